"""A transaction on a real Kafka that does not end by itself."""

from __future__ import annotations

import confluent_kafka


class OpenTransaction:
    """Of another producer, into these topics."""

    def __init__(self, bootstrap: str, name: str, topics: list[str]) -> None:
        self._producer = confluent_kafka.Producer(
            {"bootstrap.servers": bootstrap, "transactional.id": name, "transaction.timeout.ms": 600_000}
        )
        self._producer.init_transactions(60)
        self._producer.begin_transaction()
        for topic in topics:
            self._producer.produce(topic, key=b"not ours", value=b"x")
        assert self._producer.flush(60) == 0

    def abort(self) -> None:
        self._producer.abort_transaction(60)
