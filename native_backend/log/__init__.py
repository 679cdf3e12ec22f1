"""The log below the realm: its port, and its drivers on Kafka, on SQLite and simulated."""
