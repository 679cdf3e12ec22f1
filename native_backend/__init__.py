"""The native side: a realm of queues and channels, written once over a log that keeps records.

May import: the standard library, orjson, `mappings`; the clients of Kafka in `logs/kafka` only.
"""
