"""The contract of the realm, continued: what is given up is kept at the dead-letter node, once, with its cause; on
nodes of one store and of several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from native_backend.events.copy_key import CopyOrigin
from native_backend.limits import RealmLimits
from native_backend.log.port import Write
from native_backend.nodes.metadata_writer import set_properties
from native_backend.nodes.node import Node
from native_backend.nodes.properties import Properties
from native_backend.subscriptions.partitioned import eids_of, packed_eid
from tests.contract.actions import create, entries, stored, wait
from tests.kit.realm.fixtures import SPREAD, Start, bodies, realm, start, world
from tests.kit.realm.inside import context_of
from tests.kit.realm.realm_process import Consumer, RealmProcess, by_store
from tests.kit.realm.worlds import RECORD_BYTES_MAX

__all__ = ["realm", "start", "world"]  # fixtures
pytestmark = SPREAD

TTL_MS = 60_000
REST = RealmLimits(letter_rest_s=1000.0, metadata_interval_s=0.01)  # passes when a test says so
LARGE = b"x" * (RECORD_BYTES_MAX - 100)  # it fits, with what a log counts beside its octets, and its letter does not
PIECES = RealmLimits(letter_events=7, letter_bytes=400, window_bytes=1000, chunk_bytes=500, read_count=10)


def letters_of(node: Node, kept: dict[int, bytes], cause: str = "rejected") -> list[tuple[bytes, bytes]]:
    """What is stored of these events, bodies by places, store by store."""
    return [
        (b"2;%d;%d;%s;key" % (node.part(at).store, eid, cause.encode()), kept[packed_eid(at, eid)])
        for at, some in sorted(by_store([*kept]).items())
        for eid in eids_of(some)
    ]


def test_a_rejected_event_is_kept_where_the_dead_letters_go(start: Start) -> None:
    realm = start()
    dead = realm.create("dead")
    node = create(realm, "orders", Properties(dead_letter="dead"))
    eids = realm.publish(node, bodies(10))
    consumer = realm.consumer(node)
    consumer.receive(10)
    assert consumer.settle("dead-letter", eids[2:5], reason="rejected") == "done"
    kept = dict(zip(eids[2:5], bodies(10)[2:5], strict=True))
    assert stored(realm, dead, 3) == letters_of(node, kept)
    undertaker = realm.consumer(dead)
    letters = undertaker.receive(3)
    assert sorted(undertaker.bodies[eid] for eid in letters) == bodies(10)[2:5]
    twins = {(entry["store"], entry["to"]) for entry in entries(realm, "dead-letter")}
    assert twins == {(node.part(at).store, dead.part(at).store) for at in by_store([*kept])}
    realm.kill()
    later = start()
    rest = later.consumer(node)
    assert by_store(rest.receive(7)) == by_store(eids[:2] + eids[5:])
    assert rest.drain() == []
    assert by_store(later.consumer(dead).receive(3)) == by_store(letters)


def test_a_letter_says_why(start: Start) -> None:
    realm = start()
    realm.create("dead")
    node = create(realm, "orders", Properties(dead_letter="dead", attempts=3))
    (eid,) = realm.publish(node, bodies(1))
    seen: list[CopyOrigin] = []

    def annotate(key: bytes, value: bytes, letter: CopyOrigin) -> tuple[bytes, bytes]:
        seen.append(letter)
        return key, value

    object.__setattr__(context_of(realm.realm), "annotate", annotate)
    consumer = realm.consumer(node)
    for _ in range(2):
        consumer.receive(1)
        assert consumer.subscription.last_attempts([eid]) is None
        assert consumer.settle("return", [eid], failed=True) == "done"
    consumer.receive(1)
    assert consumer.subscription.last_attempts([eid]) == [True]
    assert consumer.settle("dead-letter", [eid], reason="modified-failed") == "done"
    (letter,) = seen
    assert (letter.cause, letter.node, letter.durable, letter.eid, letter.attempts) == (
        "modified-failed", "orders", "queue", eid, 3
    )  # fmt: skip


def test_without_a_dead_letter_node_it_is_discarded(realm: RealmProcess) -> None:
    loose = create(realm, "loose", Properties(dead_letter="nowhere"))
    for node in (realm.create("orders"), loose):
        eids = realm.publish(node, bodies(3))
        consumer = realm.consumer(node)
        consumer.receive(3)
        assert consumer.settle("dead-letter", eids[:1], reason="rejected") == "done"
        consumer.acknowledge(eids[1:])
        assert realm.has_ended(node, eids)
    assert [entry.get("to") for entry in entries(realm, "dead-letter")] == [None, None]


def test_a_dead_letter_is_none_twice(realm: RealmProcess) -> None:
    """Two nodes that name each other: nothing goes round."""
    node = create(realm, "one", Properties(dead_letter="two"))
    two = create(realm, "two", Properties(dead_letter="one"))
    eids = realm.publish(node, bodies(2))
    fresh = realm.publish(two, bodies(1))
    first, second = realm.consumer(node), realm.consumer(two)
    first.receive(2)
    assert first.settle("dead-letter", eids, reason="rejected") == "done"
    letters = second.receive(3)
    assert fresh[0] in letters
    assert second.settle("dead-letter", letters, reason="rejected") == "done"
    assert first.receive(1) and first.drain() == [] and second.drain() == []
    assert len(stored(realm, node, 3)) == 3  # two of its own, and the one that had not been a letter
    assert realm.has_ended(two, letters)


def test_many_letters_are_copied_in_pieces_and_answered_once(start: Start) -> None:
    realm = start(PIECES)
    dead = realm.create("dead")
    node = create(realm, "orders", Properties(dead_letter="dead"))
    eids = realm.publish(node, bodies(60, 90))
    consumer = realm.consumer(node)
    consumer.receive(60)
    chosen = eids[:20] + eids[25:26] + eids[30:]
    assert consumer.settle("dead-letter", chosen, reason="rejected") == "done"
    kept = {eid: bodies(60, 90)[eids.index(eid)] for eid in chosen}
    assert stored(realm, dead, len(chosen)) == letters_of(node, kept)
    consumer.acknowledge(eids[20:25] + eids[26:30])
    assert realm.has_ended(node, eids)
    assert realm.answers == []


def test_what_is_trimmed_before_it_could_be_copied_is_discarded(start: Start) -> None:
    realm = start()
    dead = realm.create("dead")
    node = create(realm, "orders", Properties(dead_letter="dead"))
    eids = realm.publish(node, bodies(10))
    consumer = realm.consumer(node)
    consumer.receive(10)
    kept = dict(zip(eids, bodies(10), strict=True))
    for at, some in by_store(eids).items():
        realm.world.open().control.trim(node.topic, at, eids_of(some)[1])
        del kept[some[0]]
    assert consumer.settle("dead-letter", eids, reason="rejected") == "done"
    assert stored(realm, dead, len(kept)) == letters_of(node, kept)
    assert realm.has_ended(node, eids)


def test_a_dead_letter_node_is_set_and_reset_while_consumers_are_there(start: Start) -> None:
    realm = start(RealmLimits(metadata_interval_s=0.01))
    dead, node = realm.create("dead"), realm.create("orders")
    eids = realm.publish(node, bodies(3))
    consumer = realm.consumer(node)
    consumer.receive(3)
    log = realm.world.open()
    for name, eid in (("dead", eids[0]), ("", eids[1])):
        set_properties(log, realm.prefix, "orders", lambda old, to=name: replace(old, dead_letter=to), realm.clock)  # type: ignore[misc]
        realm.until(lambda to=name: realm.realm.node("orders").properties.dead_letter == to, "it is seen")  # type: ignore[misc,union-attr]
        assert consumer.settle("dead-letter", [eid], reason="rejected") == "done"
    assert [value for _, value in stored(realm, dead, 1)] == bodies(1)


@pytest.mark.parametrize("closed_first", [False, True])
def test_a_link_that_closes_meanwhile_does_not_stop_it(realm: RealmProcess, closed_first: bool) -> None:
    dead = realm.create("dead")
    node = create(realm, "orders", Properties(dead_letter="dead"))
    eids = realm.publish(node, bodies(4))
    consumer = realm.consumer(node)
    consumer.receive(4)
    owner = consumer.start("dead-letter", eids[:2], reason="rejected")
    if closed_first:
        consumer.subscription.close()
    assert realm.settled(owner) == "done"
    assert len(stored(realm, dead, 2)) == 2
    other = realm.consumer(node) if closed_first else consumer
    assert by_store(other.drain()) == by_store(eids[2:] if closed_first else [])


def transactions(realm: RealmProcess) -> list[int]:
    """From now on, how many records each has."""
    transact, counts = realm.log.transact, list[int]()

    def counted(shard: str, writes: Sequence[Write], owner: object) -> None:
        counts.append(len(writes))
        transact(shard, writes, owner)

    setattr(realm.log, "transact", counted)  # noqa: B010
    return counts


def enlarge_letters(realm: RealmProcess) -> None:
    """Those of `LARGE`, by what a transformer notes in them."""

    def annotate(key: bytes, value: bytes, letter: CopyOrigin) -> tuple[bytes, bytes]:
        return key, value + b"noted" * 50 if value == LARGE else value

    object.__setattr__(context_of(realm.realm), "annotate", annotate)


def name_letters(realm: RealmProcess, name: str) -> None:
    """An operator sets where the dead letters of `orders` go."""
    set_properties(realm.world.open(), realm.prefix, "orders", lambda old: replace(old, dead_letter=name), realm.clock)
    realm.until(lambda: realm.realm.node("orders").properties.dead_letter == name, "it is seen")  # type: ignore[union-attr]


def rest_over(realm: RealmProcess) -> None:
    wait(realm, round(REST.letter_rest_s * 1000))
    realm.clock.lapse(REST.letter_rest_s)


def rests(realm: RealmProcess, consumer: Consumer, tried: list[int]) -> None:
    """Nothing is tried for a while, and nothing is given."""
    realm.until(lambda: consumer.take() == [] and not context_of(realm.realm).preparing, "the end of what is tried")
    count = len(tried)
    assert consumer.linger(100) == []
    assert len(tried) == count


def test_an_expired_event_whose_letter_is_too_large_stays_beside_others_that_are_letters(start: Start) -> None:
    realm = start(REST)
    enlarge_letters(realm)
    dead = realm.create("dead")
    node = create(realm, "orders", Properties(ttl_ms=TTL_MS, dead_letter="dead"))
    values = [*bodies(5), LARGE, *bodies(4)]
    eids = realm.publish(node, values)
    wait(realm, TTL_MS)
    tried = transactions(realm)
    consumer = realm.consumer(node)
    kept = dict(zip(eids, values, strict=True))
    del kept[eids[5]]
    realm.until(lambda: not consumer.take() and len(entries(realm, "expired")) > 0, "the first letters")
    assert stored(realm, dead, 9) == letters_of(node, kept, "expired")
    rests(realm, consumer, tried)
    assert len(tried) < 30
    assert not realm.has_ended(node, eids)
    name_letters(realm, "")
    rest_over(realm)
    realm.until(lambda: not consumer.take() and realm.has_ended(node, eids), "its end without a letter")


def test_a_rejected_event_whose_letter_is_too_large_rests_and_comes_back(start: Start) -> None:
    realm = start(REST)
    enlarge_letters(realm)
    dead = realm.create("dead")
    node = create(realm, "orders", Properties(dead_letter="dead"))
    values = [*bodies(5), LARGE, *bodies(4)]
    eids = realm.publish(node, values)
    consumer = realm.consumer(node)
    consumer.receive(10)
    assert "unexpected" in consumer.settle("dead-letter", eids, reason="rejected")
    kept = dict(zip(eids, values, strict=True))
    del kept[eids[5]]
    assert stored(realm, dead, 9) == letters_of(node, kept)
    consumer.subscription.close()
    other = realm.consumer(node)
    assert other.drain() == []
    rest_over(realm)
    assert other.receive(1) == [eids[5]]
    other.acknowledge([eids[5]])
    assert realm.has_ended(node, eids)


def test_where_the_letters_topic_is_gone_events_stay_and_are_tried_now_and_then(start: Start) -> None:
    realm = start(REST)
    dead = realm.create("dead")
    node = create(realm, "orders", Properties(ttl_ms=TTL_MS, dead_letter="dead"))
    eids = realm.publish(node, bodies(30))
    realm.world.open().control.delete_topics([dead.topic])
    wait(realm, TTL_MS)
    tried = transactions(realm)
    consumer = realm.consumer(node)
    realm.until(lambda: not consumer.take() and bool(tried), "the first try")
    rests(realm, consumer, tried)
    assert len(tried) <= 3 * node.partitions
    realm.create("other")
    name_letters(realm, "other")
    rest_over(realm)
    realm.until(lambda: not consumer.take() and realm.has_ended(node, eids), "their letters elsewhere")
    assert len(stored(realm, realm.realm.node("other"), 30)) == 30  # type: ignore[arg-type]
