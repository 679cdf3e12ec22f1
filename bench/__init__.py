"""Side-by-side measurements: realmgate on both realms, Artemis, and a bare Kafka producer, in one run.

Rates in messages a second, sizes in bytes, latencies in microseconds. Never a timed test: `make bench`.
"""
