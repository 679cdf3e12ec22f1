"""AMQP frames as octets: read, checked, rewritten."""
