"""The contract of the realm, continued: what is given up is kept at the dead-letter node, once, with its cause."""

from __future__ import annotations

from dataclasses import replace

import orjson
import pytest

from native_backend import admin
from native_backend.letter import Letter
from native_backend.limits import RealmLimits
from native_backend.log import Records
from native_backend.metadata import read_tail
from native_backend.metadata_writer import set_properties
from native_backend.nodes import Node
from native_backend.properties import Properties
from tests.native_backend.gateway import Gateway
from tests.native_backend.realm_world import Start, bodies, gateway, start, world

__all__ = ["gateway", "start", "world"]  # fixtures

PIECES = RealmLimits(letter_events=7, letter_bytes=400, window_bytes=1000, chunk_bytes=500, read_count=10)


def create(gateway: Gateway, name: str, properties: Properties, kind: str = "queue") -> Node:
    """A node with these properties, known to the gateway."""
    log = gateway.world.open()
    admin.create_node(log, gateway.prefix, name, kind, gateway.clock, properties)  # type: ignore[arg-type]
    node = gateway.find(name)
    assert node is not None
    return node


def entries(gateway: Gateway, operation: str) -> list[dict[str, object]]:
    """The journal's entries of one operation."""
    found: list[Records] = read_tail(gateway.world.open(), f"{gateway.prefix}.journal", 0)
    records = [orjson.loads(value) for part in found for value in part.values if value is not None]
    return [entry for record in records for entry in record["entries"] if entry["operation"] == operation]


def stored(gateway: Gateway, node: Node, count: int) -> list[tuple[bytes, bytes]]:
    """Keys and values of a node's events, once there are so many (a log may show them a little late)."""
    log = gateway.world.open()
    pairs: list[tuple[bytes, bytes]] = []

    def there() -> bool:
        found = read_tail(log, node.topic, 0)
        columns = [each for part in found for each in zip(part.keys, part.values, strict=True)]
        pairs[:] = [(key or b"", value) for key, value in columns if value is not None]
        return len(pairs) >= count

    gateway.until(there, f"{count} events of {node.name}")
    return pairs


def test_a_rejected_event_is_kept_where_the_dead_letters_go(start: Start) -> None:
    gateway = start()
    dead = gateway.create("dead")
    node = create(gateway, "orders", Properties(dead_letter="dead"))
    eids = gateway.publish(node, bodies(10))
    consumer = gateway.consumer(node)
    consumer.receive(10)
    assert consumer.settle("dead-letter", eids[2:5], reason="rejected") == "done"
    keys = [b"2;%d;%d;rejected;key" % (node.store, eid) for eid in eids[2:5]]
    assert stored(gateway, dead, 3) == list(zip(keys, bodies(10)[2:5], strict=True))
    undertaker = gateway.consumer(dead)
    letters = undertaker.receive(3)
    assert [undertaker.bodies[eid] for eid in letters] == bodies(10)[2:5]
    (entry,) = entries(gateway, "dead-letter")
    assert entry["to"] == dead.store
    gateway.kill()
    later = start()
    rest = later.consumer(node)
    assert rest.receive(7) == eids[:2] + eids[5:]
    assert rest.drain() == []
    assert later.consumer(dead).receive(3) == letters


def test_a_letter_says_why(start: Start) -> None:
    gateway = start()
    gateway.create("dead")
    node = create(gateway, "orders", Properties(dead_letter="dead", attempts=3))
    (eid,) = gateway.publish(node, bodies(1))
    seen: list[Letter] = []

    def enclose(key: bytes, value: bytes, letter: Letter) -> tuple[bytes, bytes]:
        seen.append(letter)
        return key, value

    object.__setattr__(gateway.realm._services, "enclose", enclose)
    consumer = gateway.consumer(node)
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


def test_without_a_dead_letter_node_it_is_discarded(gateway: Gateway) -> None:
    loose = create(gateway, "loose", Properties(dead_letter="nowhere"))
    for node in (gateway.create("orders"), loose):
        eids = gateway.publish(node, bodies(3))
        consumer = gateway.consumer(node)
        consumer.receive(3)
        assert consumer.settle("dead-letter", eids[:1], reason="rejected") == "done"
        consumer.acknowledge(eids[1:])
        assert gateway.state(node).low == eids[-1] + 1
    assert [entry.get("to") for entry in entries(gateway, "dead-letter")] == [None, None]


def test_a_dead_letter_is_none_twice(gateway: Gateway) -> None:
    """Two nodes that name each other: nothing goes round."""
    one = create(gateway, "one", Properties(dead_letter="two"))
    two = create(gateway, "two", Properties(dead_letter="one"))
    eids = gateway.publish(one, bodies(2))
    fresh = gateway.publish(two, bodies(1))
    first, second = gateway.consumer(one), gateway.consumer(two)
    first.receive(2)
    assert first.settle("dead-letter", eids, reason="rejected") == "done"
    letters = second.receive(3)
    assert letters[0] == fresh[0]
    assert second.settle("dead-letter", letters, reason="rejected") == "done"
    assert first.receive(1) and first.drain() == [] and second.drain() == []
    assert len(stored(gateway, one, 3)) == 3  # two of its own, and the one that had not been a letter
    assert gateway.state(two).low == letters[-1] + 1


def test_many_letters_are_copied_in_pieces_and_answered_once(start: Start) -> None:
    gateway = start(PIECES)
    dead = gateway.create("dead")
    node = create(gateway, "orders", Properties(dead_letter="dead"))
    eids = gateway.publish(node, bodies(60, 90))
    consumer = gateway.consumer(node)
    consumer.receive(60)
    chosen = eids[:20] + eids[25:26] + eids[30:]
    assert consumer.settle("dead-letter", chosen, reason="rejected") == "done"
    assert [value for _, value in stored(gateway, dead, len(chosen))] == [
        bodies(60, 90)[eids.index(eid)] for eid in chosen
    ]
    consumer.acknowledge(eids[20:25] + eids[26:30])
    assert gateway.state(node).low == eids[-1] + 1
    assert gateway.answers == []


def test_what_is_trimmed_before_it_could_be_copied_is_discarded(start: Start) -> None:
    gateway = start()
    dead = gateway.create("dead")
    node = create(gateway, "orders", Properties(dead_letter="dead"))
    eids = gateway.publish(node, bodies(10))
    consumer = gateway.consumer(node)
    consumer.receive(10)
    gateway.world.open().trim(node.topic, 0, eids[4])
    assert consumer.settle("dead-letter", eids, reason="rejected") == "done"
    assert [value for _, value in stored(gateway, dead, 6)] == bodies(10)[4:]
    assert gateway.state(node).low == eids[-1] + 1


def test_a_dead_letter_node_is_set_and_reset_while_consumers_are_there(start: Start) -> None:
    gateway = start(RealmLimits(metadata_interval_s=0.01))
    dead, node = gateway.create("dead"), gateway.create("orders")
    eids = gateway.publish(node, bodies(3))
    consumer = gateway.consumer(node)
    consumer.receive(3)
    log = gateway.world.open()
    for name, eid in (("dead", eids[0]), ("", eids[1])):
        set_properties(log, gateway.prefix, "orders", lambda old, to=name: replace(old, dead_letter=to), gateway.clock)  # type: ignore[misc]
        gateway.until(lambda to=name: gateway.realm.node("orders").properties.dead_letter == to, "it is seen")  # type: ignore[misc,union-attr]
        assert consumer.settle("dead-letter", [eid], reason="rejected") == "done"
    assert [value for _, value in stored(gateway, dead, 1)] == bodies(1)


@pytest.mark.parametrize("closed_first", [False, True])
def test_a_link_that_closes_meanwhile_does_not_stop_it(gateway: Gateway, closed_first: bool) -> None:
    dead = gateway.create("dead")
    node = create(gateway, "orders", Properties(dead_letter="dead"))
    eids = gateway.publish(node, bodies(4))
    consumer = gateway.consumer(node)
    consumer.receive(4)
    owner = consumer.start("dead-letter", eids[:2], reason="rejected")
    if closed_first:
        consumer.subscription.close()
    assert gateway.settled(owner) == "done"
    assert len(stored(gateway, dead, 2)) == 2
    other = gateway.consumer(node) if closed_first else consumer
    assert other.drain() == (eids[2:] if closed_first else [])
