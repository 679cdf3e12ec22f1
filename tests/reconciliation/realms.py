"""A realm for a test of the reconciliation on either log: its records are made through the log port, faults are planted
behind its back with other clients.

    with made("kafka", request, tmp_path) as place: ...
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition

from native_backend.log.open import open_embedded, open_kafka
from native_backend.log.sqlite.schema import connect
from reconciliation.model.settings import Realm
from tests.kit.patience import HANG_S
from tests.kit.processes.gateway import GatewayProcess
from tests.kit.realm import sqlite_snapshot as snapshot
from tests.kit.wire import frames
from tests.reconciliation import planting
from tests.reconciliation.planting import Record
from tests.reconciliation.world import World

PATIENCE_S = HANG_S


@dataclass(slots=True)
class Place:
    """A realm, and what can be done to it by who is not its gateway."""

    realm: Realm

    @contextmanager
    def world(self) -> Iterator[World]:
        log = open_embedded(self.realm.path) if self.realm.path else open_kafka(self.realm.bootstrap, {})
        with closing(log):
            yield World(log, self.realm.prefix)

    def topic(self, kind: str) -> str:
        return f"{self.realm.prefix}.{kind}"

    def keep(self, topic: str, wanted: Callable[[Record], bool]) -> None:
        """A copy of the topic with the wanted records, from offset 0 on, takes its place."""
        if self.realm.path:
            self._keep_rows(self.realm.path, topic, wanted)
            return
        kept = [record for record in self.records(topic) if wanted(record)]
        self.drop(topic)
        with closing(KafkaAdminClient(bootstrap_servers=self.realm.bootstrap)) as admin:
            admin.create_topics({topic: {"num_partitions": 1, "replication_factor": 1}}, wait_for_metadata=True)
        self.produce(topic, [(key, value) for _, key, value in kept])

    def _keep_rows(self, directory: Path, topic: str, wanted: Callable[[Record], bool]) -> None:
        planting.edit(directory, topic, lambda records: [record for record in records if wanted(record)])
        with closing(connect(directory)) as connection, connection:
            last = "SELECT coalesce(max(b.first + b.count) + 1, 0) FROM batches b WHERE b.partition = partitions.id"
            connection.execute(f"UPDATE partitions SET next = ({last}) WHERE topic = ?", (topic,))

    def records(self, topic: str) -> list[Record]:
        """What is committed, as a plain consumer reads it."""
        if self.realm.path:
            with snapshot.opened(self.realm.path) as rows:
                return [(offset, key, value) for _, _, offset, _, key, value in rows.rows(topic, unreadable)]
        place = TopicPartition(topic, 0)
        with closing(
            KafkaConsumer(bootstrap_servers=self.realm.bootstrap, isolation_level="read_committed")
        ) as consumer:
            consumer.assign([place])
            consumer.seek_to_beginning(place)
            end = consumer.end_offsets([place])[place]
            entries: list[Record] = []
            while consumer.position(place) < end:
                polled = consumer.poll(timeout_ms=500).get(place, [])
                entries += [(record.offset, record.key, record.value) for record in polled]
        return entries

    def produce(self, topic: str, records: Iterable[tuple[bytes | None, bytes | None]]) -> None:
        """Plainly, as anybody might who has the right; on the embedded realm into its file."""
        if self.realm.path:
            for key, value in records:
                planting.add(self.realm.path, topic, key or b"", value)
            return
        with closing(KafkaProducer(bootstrap_servers=self.realm.bootstrap)) as producer:
            for key, value in records:
                producer.send(topic, value, key).get(PATIENCE_S)

    def drop(self, topic: str) -> None:
        """As an administrator of the log does it."""
        if self.realm.path:
            log = open_embedded(self.realm.path)
            with closing(log):
                log.control.delete_topics([topic])
            return
        with closing(KafkaAdminClient(bootstrap_servers=self.realm.bootstrap)) as admin:
            admin.delete_topics([topic])


def unreadable(topic: str, number: int, first: int, end: int) -> None:
    raise AssertionError(f"{topic}/{number} cannot be read from {first} to {end}")


def made(kind: str, request: pytest.FixtureRequest, directory: Path) -> Place:
    prefix = f"r{uuid.uuid4().hex[:8]}"
    if kind == "embedded":
        open_embedded(directory).close()
        return Place(Realm("embedded", prefix, path=directory))
    return Place(Realm("kafka", prefix, bootstrap=request.getfixturevalue("kafka_bootstrap")))


ACCEPTED = frames.state("accepted")


def place_of(gateway: GatewayProcess) -> Place:
    settings = gateway.settings["realm"]
    if settings["kind"] == "embedded":
        return Place(Realm("embedded", "um", path=Path(settings["path"])))
    return Place(Realm("kafka", settings["prefix"], bootstrap=settings["bootstrap"]))
