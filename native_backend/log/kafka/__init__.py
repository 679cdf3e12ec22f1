"""The log port on Kafka: confluent-kafka carries the data, kafka-python does the control.

May import: the two clients, tenacity, `native_backend.log`, this driver.
"""
