"""An AMQP message as octets: its sections, and what they say."""
