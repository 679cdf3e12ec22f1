"""The bare producer: what confluent-kafka alone can store, in a process of its own: one `produce` and one callback a
message, three headers, idempotent, acks=all.

`python -m bench.producer BOOTSTRAP TOPIC COUNT SIZE` prints one line of JSON.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

SETTINGS = {
    "enable.idempotence": True,
    "acks": "all",
    "linger.ms": 5,
    "queue.buffering.max.messages": 1_000_000,
    "queue.buffering.max.kbytes": 1_048_576,
}
HEADERS: list[tuple[str, str | bytes | None]] = [("format", b"1"), ("run", b"19aa5b3c1f0-9c2e"), ("seq", b"1234567")]


def main(bootstrap: str, topic: str, count: int, size: int) -> dict[str, Any]:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    if topic not in admin.list_topics(timeout=10).topics:
        admin.create_topics([NewTopic(topic, 1)])[topic].result(10)
    stored = failed = 0

    def on_delivery(error: KafkaError | None, message: Message) -> None:
        nonlocal stored, failed
        if error is None:
            stored += 1
        else:
            failed += 1

    producer = Producer({"bootstrap.servers": bootstrap, **SETTINGS})
    producer.list_topics(topic, timeout=10)
    value = os.urandom(size)
    begin = time.perf_counter()
    for at in range(count):
        producer.produce(topic, value, partition=0, headers=HEADERS, on_delivery=on_delivery)
        if at % 100 == 0:
            producer.poll(0)
    producer.flush(60)
    seconds = time.perf_counter() - begin
    return {
        "count": count,
        "size": size,
        "seconds": seconds,
        "rate": stored / seconds,
        "stored": stored,
        "failed": failed,
    }


if __name__ == "__main__":
    bootstrap, topic, count, size = sys.argv[1:]
    print(json.dumps(main(bootstrap, topic, int(count), int(size))))
