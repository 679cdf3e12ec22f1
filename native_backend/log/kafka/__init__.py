"""The log port on Kafka: confluent-kafka carries the data, kafka-python does the control."""
