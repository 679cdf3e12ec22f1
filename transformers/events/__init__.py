"""The transformers: AMQP messages to native events and back."""
