"""AMQP 1.0 on one side, the native realm on the other: bytes to facts, facts to decisions, decisions carried out."""
