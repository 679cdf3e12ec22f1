"""What the contract's tests do with a realm, and what they read of its log."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson

from native_backend.journal.settlement import Settlement
from native_backend.log.port import LogError, Records
from native_backend.nodes.admin import create_node
from native_backend.nodes.answers import Commanded, Committed, DurablesFound, Published
from native_backend.nodes.commands import What
from native_backend.nodes.durable import QUEUE, DurableName
from native_backend.nodes.grants import ANONYMOUS
from native_backend.nodes.metadata import read_tail
from native_backend.nodes.node import Node
from native_backend.nodes.properties import Properties
from native_backend.nodes.words import NodeKind
from native_backend.realm import Posting
from native_backend.subscriptions.partitioned import eids_of, packed_eid
from native_backend.subscriptions.subscription import Mode
from tests.kit.realm.fixtures import bodies
from tests.kit.realm.realm_process import Consumer, RealmProcess, by_store


def await_shown(realm: RealmProcess, node: Node, places: list[int]) -> None:
    """Until who reads the log finds these events: what is answered as stored may be shown a little later."""
    ends = {at: max(eids_of(some)) for at, some in by_store(places).items()}

    def is_shown() -> bool:
        bounds = {at: realm.log.control.bounds(node.topic, at) for at in ends}
        return all(bounds[at][1] > eid for at, eid in ends.items())

    realm.until(is_shown, "the log to show what is stored")


def create(realm: RealmProcess, name: str, properties: Properties, kind: NodeKind = "queue") -> Node:
    """A node with these properties, known to the gateway."""
    return realm.create(name, kind, properties)


def entries(realm: RealmProcess, operation: str) -> list[dict[str, Any]]:
    """The journal's entries of one operation."""
    batches: list[Records] = read_tail(realm.world.open(), f"{realm.prefix}.journal", 0)
    records = [orjson.loads(value) for part in batches for value in part.values if value is not None]
    return [entry for record in records for entry in record["entries"] if entry["operation"] == operation]


def places_in(node: Node, journal: Iterable[dict[str, Any]]) -> list[int]:
    """Of which events of a node these entries of the journal speak, by their places."""
    partitions = {part.store: part.partition for part in node.parts}
    return [
        packed_eid(partitions[entry["store"]], eid)
        for entry in journal
        if entry["store"] in partitions
        for first, last, _, _ in entry["runs"]
        for eid in range(first, last + 1)
    ]


def visible(realm: RealmProcess, node: Node, places: list[int]) -> None:
    """Waits until the log shows all of these, the last events of their stores."""
    ends = {at: eids_of(some)[-1] for at, some in by_store(sorted(places)).items()}
    bounds = realm.log.control.bounds
    realm.until(lambda: all(bounds(node.topic, at)[1] > end for at, end in ends.items()), "all visible")


def in_each_store(
    realm: RealmProcess, what: What, node: Node, durable: str = QUEUE, at: list[int] | None = None, **more: Any
) -> list[Commanded]:
    """The command in every store of the node, as the command line gives it; `at`: a place in each of them."""
    eids = {store: eids_of(some)[0] for store, some in by_store(at or []).items()}
    return [realm.command(what, part, durable, eids.get(part.partition, 0), **more) for part in node.parts]


def stored(realm: RealmProcess, node: Node, count: int) -> list[tuple[bytes, bytes]]:
    """Keys and values of a node's events, store by store, once there are so many."""
    log = realm.world.open()
    pairs: list[tuple[bytes, bytes]] = []

    def there() -> bool:
        pairs.clear()
        for part in node.parts:
            first, end = log.control.bounds(part.topic, part.partition)
            records = log.control.read_range(part.topic, part.partition, first, end - first) if end > first else None
            columns = zip(records.keys, records.values, strict=True) if records is not None else ()
            pairs.extend((key or b"", value) for key, value in columns if value is not None)
        return len(pairs) >= count

    realm.until(there, f"{count} events of {node.name}")
    return pairs


def answers(done: list[Commanded]) -> set[str]:
    return {reply.answer for reply in done}


def heads(places: dict[int, list[int]], count: int) -> list[int]:
    """The first so many of each store."""
    return [eid for some in places.values() for eid in some[:count]]


def tails(places: dict[int, list[int]], begin: int) -> list[int]:
    """The others."""
    return [eid for some in places.values() for eid in some[begin:]]


FULL = Properties(capacity_events=10, honour_capacity=True)


def offer(realm: RealmProcess, node: Node, count: int, size: int = 0) -> tuple[list[int], int]:
    """The EIDs of what was stored, and how many were refused: always the last ones."""
    owner = object()
    realm.realm.publish(node, [b"key"] * count, bodies(count, size), owner)
    eids: list[int] = []
    refused = 0
    while len(eids) + refused < count:
        reply = realm.answer(Published, lambda answer: answer.owner is owner)
        if reply.answer == "stored":
            assert reply.first == len(eids)
            eids += reply.eids
        else:
            assert (reply.answer, reply.native) == ("capacity-reached", "capacity-reached")
            refused += len(reply.eids)
            assert reply.first == count - refused
    return eids, refused


def unsubscribe(realm: RealmProcess, name: str) -> str:
    owner, by = object(), object()
    realm.realm.find_durables(DurableName(name), ANONYMOUS, owner)
    reply = realm.answer(DurablesFound, lambda answer: answer.owner is owner)
    if reply.answer != "ready":
        return f"find: {reply.answer}"
    for durable in reply.durables:
        realm.realm.unsubscribe(durable, by)
    return realm.answer(Commanded, lambda answer: answer.owner is by).answer


LONG_MS = 3_600_000


def publish(realm: RealmProcess, node: Node, ttls_ms: list[int]) -> list[int]:
    """Events with times to live of their own; 0: none."""
    keys = [b"1;basic;run;%d;1;4;%s;0;;0" % (at, b"T%d" % ttl if ttl else b"") for at, ttl in enumerate(ttls_ms, 1)]
    return realm.publish(node, bodies(len(keys)), keys)


def wait(realm: RealmProcess, ms: int) -> None:
    """So much time of day passes at once, for this process alone."""
    realm.clock.move(ms + 1)


class Sleeper:
    """A consumer that parks."""

    def __init__(self, realm: RealmProcess, node: Node, mode: Mode = "queue", durable: str | None = None) -> None:
        self.realm = realm
        self.consumer = realm.consumer(node, mode, durable)
        self.woken = 0

    def wake(self) -> None:
        self.woken += 1

    def park(self) -> Sleeper:
        """Once there is nothing for it; some logs have to look first."""

        def parked() -> bool:
            assert not self.consumer.take(1)
            return self.consumer.subscription.park(self.wake)

        self.realm.until(parked, "a place to wait")
        return self

    def sleeps(self, turns: int = 30) -> None:
        before = self.woken
        for _ in range(turns):
            self.realm.turn()
        assert self.woken == before, "woken for nothing"

    def wakes(self, before: int = 0) -> Consumer:
        self.realm.until(lambda: self.woken > before, "being woken")
        return self.consumer


def wide(realm: RealmProcess, kind: str = "queue", partitions: int = 3, levels: int = 0, name: str = "wide") -> Node:
    properties = Properties(priority_levels=levels) if levels else Properties(partitions=partitions)
    create_node(realm.log, realm.prefix, name, kind, realm.clock, properties)  # type: ignore[arg-type]
    node = realm.find(name)
    assert node is not None
    return node


def posting(realm: RealmProcess, name: str, values: list[bytes]) -> Posting:
    """For the last store of that node."""
    node = realm.realm.node(name)
    assert node is not None
    return Posting(node.parts[-1], [b"key"] * len(values), values)


def retire(consumer: Consumer, eids: list[int]) -> list[Settlement]:
    assert consumer.reserve(eids)
    return consumer.retire("acknowledge", eids)


def commit(realm: RealmProcess, settlements: list[Settlement], postings: list[Posting]) -> object:
    owner = object()
    realm.realm.commit(settlements, postings, owner)
    return owner


def committed(realm: RealmProcess, owner: object) -> Committed:
    return realm.answer(Committed, lambda answer: answer.owner is owner)


def reaches(realm: RealmProcess, part: Node, eid: int) -> bool:
    """Whether that event of a store can be seen."""
    try:
        return realm.log.control.bounds(part.topic, part.partition)[1] > eid
    except LogError as error:
        if error.failure.cause != "unavailable":  # a cluster of which a broker died, and a thread that still asks it
            raise
        return False
