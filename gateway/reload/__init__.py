"""What is read again while the gateway serves: tables, users, certificates."""
