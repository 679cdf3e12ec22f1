"""Topics that were there before their node: plain producers write there, and that is no anomaly; what the gateway
stores there is reconciled like everything else. A real gateway, on both realms."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import closing

import pytest
from kafka import KafkaAdminClient, KafkaProducer

from native_backend.log.open import open_embedded
from native_backend.log.port import Append, TopicSpec
from tests.kit.processes.gateway import StartGateway
from tests.kit.wire import frames
from tests.kit.wire.peer import Peer
from tests.reconciliation.conftest import Reconcile
from tests.reconciliation.realms import ACCEPTED, PATIENCE_S, Place, place_of

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # kafka-python reads its own schemas the old way
PARTITIONS = 2
STRANGE = [(b"order-7", b"{}"), (None, b"no key"), (b"1;basic;1a2b3c4d5e6-beef;7;1;4;;0;;0", b"of another realm")]


def make(place: Place, topic: str) -> None:
    if place.realm.path:
        with closing(open_embedded(place.realm.path)) as log:
            log.control.create_topics([TopicSpec(topic, PARTITIONS)])
        return
    with closing(KafkaAdminClient(bootstrap_servers=place.realm.bootstrap)) as admin:
        admin.create_topics({topic: {"num_partitions": PARTITIONS, "replication_factor": 1}}, wait_for_metadata=True)


def write(place: Place, topic: str, records: Iterable[tuple[bytes | None, bytes | None]]) -> None:
    """Into its last partition; a record without a value, which is no event, into the first one."""
    if place.realm.path:
        with closing(open_embedded(place.realm.path)) as log:
            for key, value in records:
                if value is None:
                    log.control.put(topic, key or b"", value)
                    continue
                log.append(Append(topic, PARTITIONS - 1, [key or b""], [value]))
                while not log.poll():
                    time.sleep(0.001)
        return
    with closing(KafkaProducer(bootstrap_servers=place.realm.bootstrap)) as producer:
        for key, value in records:
            producer.send(topic, value, key, partition=0 if value is None else PARTITIONS - 1).get(PATIENCE_S)


@pytest.mark.parametrize("kind", ["embedded", "kafka"])
def test_an_adopted_topic_is_reconciled(new_gateway: StartGateway, reconcile: Reconcile, kind: str) -> None:
    gateway = new_gateway(kind)
    place = place_of(gateway)
    topic = f"shop.{place.realm.prefix}"
    make(place, topic)
    write(place, topic, [*STRANGE, (b"order-7", None)])
    gateway.command("node", "create", "news", "--topic", topic)
    write(place, topic, STRANGE[:2])
    for _ in range(2):
        with Peer(gateway.port) as peer:
            peer.stored("news", *(frames.message(b"%d" % at) for at in range(6)))
            peer.consumer("news", credit=5)
            peer.settle([seen.field(1) for seen in peer.receive(5)], ACCEPTED, settled=False)
            assert set(peer.outcomes(5).values()) == {"accepted"}
        gateway.kill()
        gateway.start()
    assert gateway.stop() == 0
    result = reconcile(place.realm)
    assert result.text.startswith("Verdict: CLEAN."), result.text
    books = [book for book in result.manifest["balance"]["nodes"] if book["node"] == "news"]
    assert len(books) == PARTITIONS
    counted = {name: sum(book[name] for book in books) for name in ("accepted", "indeterminate", "native", "stored")}
    assert counted == {"accepted": 12, "indeterminate": 0, "native": 5, "stored": 17}
    queues = [queue for queue in result.manifest["balance"]["durables"] if queue["node"] == "news"]
    assert sum(queue["entitled"] for queue in queues) == 17
    assert sum(queue["acknowledged"] for queue in queues) == 10, queues

    place.drop(topic)
    result = reconcile(place.realm)
    classes = result.classes()
    assert classes.pop("P5", 0) in (0, 5, 10), "a kill may leave the last outcomes to the journal"
    assert classes == {"P1": 12, "Q1": 1}, "nothing was stored in partition 0, as far as could be seen"
    assert (result.manifest["verdict"], result.code) == ("not clean", 1)
    assert {row["node"] for row in result.examples("P1")} == {"news"}
    assert all(f"topic {topic} partition" in row["detail"] for row in result.examples("P1"))


@pytest.mark.parametrize("kind", ["embedded", "kafka"])
def test_a_node_that_was_deleted_by_command_and_made_again(
    new_gateway: StartGateway, reconcile: Reconcile, kind: str
) -> None:
    """By a real owner, beside it, and without one; the topic that was adopted stays each time."""
    gateway = new_gateway(kind)
    place = place_of(gateway)
    topic = f"shop.{place.realm.prefix}"
    make(place, topic)
    for _ in range(2):
        gateway.command("node", "create", "plain")
        gateway.command("node", "create", "news", "--topic", topic)
        with Peer(gateway.port) as peer:
            peer.stored("plain", frames.message(b"1"), frames.message(b"2"))
            peer.stored("news", frames.message(b"3"))
        gateway.command("node", "delete", "plain", "--yes")
        gateway.command("node", "delete", "news", "--yes")
    gateway.command("node", "create", "news", "--topic", topic)
    gateway.command("node", "create", "last")
    with Peer(gateway.port) as peer:
        peer.stored("last", frames.message(b"4"))
    assert gateway.stop() == 0
    gateway.command("node", "delete", "last", "--yes")
    result = reconcile(place.realm)
    assert result.text.startswith("Verdict: CLEAN."), result.text
    assert result.manifest["balance"]["deleted"] == 5
    news = [book for book in result.manifest["balance"]["nodes"] if book["node"] == "news"]
    assert sum(book["accepted"] for book in news) == sum(book["stored"] for book in news) == 2
