"""Peers that speak AMQP by hand, and gateways on realms that are scripted or recorded."""
