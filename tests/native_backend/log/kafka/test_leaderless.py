"""Three brokers, of which one is gone: a topic of which a partition has no leader is there, and others can be made."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import KafkaProducer
from kafka.admin import KafkaAdminClient

from native_backend.log.kafka.driver import KafkaLog
from native_backend.log.kafka.watch import INTERVAL_S
from native_backend.log.port import Failure, LogError, TopicSpec
from tests.kit.patience import until
from tests.kit.processes.broker import Broker, start_cluster
from tests.kit.processes.replicas import NO_LEADER, Replicas


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[list[Broker]]:
    brokers = start_cluster(tmp_path)
    yield brokers
    for broker in brokers:
        broker.stop()


def test_a_reader_goes_on_when_its_partition_has_a_leader_again(cluster: list[Broker]) -> None:
    """One replica, on a broker that is killed: for as long as that takes, the partition has no leader."""
    addresses = ",".join(broker.bootstrap for broker in cluster)
    admin, replicas = KafkaAdminClient(bootstrap_servers=addresses.split(",")), Replicas(cluster)
    topic = {"num_partitions": 1, "replication_factor": 1, "configs": {"min.insync.replicas": "1"}}
    admin.create_topics({"single": topic})
    until(lambda: replicas.leader("single") > 0, "a leader")
    owner = cluster[replicas.leader("single") - 1]
    producer = KafkaProducer(bootstrap_servers=addresses.split(","), acks="all")
    log = KafkaLog(addresses, {})
    reader = log.open_reader("single", 0, 0)
    read: list[bytes | None] = []

    def has_read(count: int) -> bool:
        batch = reader.read(10)
        assert not isinstance(batch, Failure), batch
        read.extend(batch[1] if batch is not None else ())
        return len(read) >= count

    producer.send("single", b"before", partition=0).get(60)
    until(lambda: has_read(1), "the first event")
    owner.kill()
    until(lambda: replicas.leader("single") == NO_LEADER, "no leader")
    looks = int(5 / INTERVAL_S)
    for _ in range(looks):
        assert "single" not in log.control.find_topics(["single"]), "it cannot be used now"
        assert log.control.existing(["single"], 10.0)["single"] is not None, "but it is there"
        assert not has_read(2)
        time.sleep(INTERVAL_S)  # the watch looks as often
    owner.restart()
    until(lambda: replicas.leader("single") > 0, "a leader again")
    producer.send("single", b"after", partition=0).get(60)
    until(lambda: has_read(2), "the second event")
    assert read == [b"before", b"after"]
    producer.close()
    admin.close()
    replicas.close()
    log.close()


def test_topics_are_made_and_deleted_while_a_broker_is_gone(cluster: list[Broker]) -> None:
    """Whichever it is: kafka-python asks one of them for that, and keeps to it."""
    log = KafkaLog(",".join(broker.bootstrap for broker in cluster), {})
    log.control.create_topics([TopicSpec("before", 1, False)])
    for number, broker in enumerate(cluster):
        broker.kill()
        until(lambda name=f"without-{number}": is_made(log, name), "a topic")  # type: ignore[misc]
        log.control.delete_topics([f"without-{number}"])
        broker.restart()
    log.close()


def is_made(log: KafkaLog, name: str) -> bool:
    try:
        log.control.create_topics([TopicSpec(name, 1, False)])
    except LogError as error:  # while the controllers elect another one
        assert error.failure.cause == "unavailable", error
        return False
    return True


def test_two_brokers_have_what_is_stored_though_the_cluster_wants_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "extra.properties").write_text("min.insync.replicas=1\n")
    monkeypatch.setenv("KAFKA_EXTRA", str(tmp_path / "extra.properties"))
    brokers = start_cluster(tmp_path)
    addresses = [broker.bootstrap for broker in brokers]
    admin, log = KafkaAdminClient(bootstrap_servers=addresses), KafkaLog(",".join(addresses), {})

    def enough(name: str) -> str:
        return log.control.inspect([name]).topics[name].settings["min.insync.replicas"]

    try:
        admin.create_topics({"by-default": {"num_partitions": 1, "replication_factor": 3}}, wait_for_metadata=True)
        log.control.create_topics([TopicSpec("ours"), TopicSpec("states", compacted=True)])
        assert (enough("by-default"), enough("ours"), enough("states")) == ("1", "2", "2")
    finally:
        log.close()
        admin.close()
        for broker in brokers:
            broker.stop()
