"""The realm at scale, without AMQP: what acknowledgement costs in time and memory when there is much of it."""
