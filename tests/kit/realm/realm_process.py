"""A realm for tests: one process's realm on a log, and the verbs that the tests are written in.

Every verb waits for its answer. Seqs count the dispatched events of the run, as a gateway's do. With several partitions
every node that it creates has so many, what it publishes goes to them by turns, and events are named by their places:
so a test says of a node of one store what it says of one of several, but for the order between stores (`by_store`).
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from threading import Event
from typing import Any, TypeVar

from native_backend.clock import SystemClock
from native_backend.events.selection import Selection
from native_backend.journal.journal import tail
from native_backend.journal.settlement import Settlement, SettlementRequest
from native_backend.limits import RealmLimits
from native_backend.log.port import Append, Appended, Log
from native_backend.log.simulated.worker import InlineWorker
from native_backend.log.worker import Workers
from native_backend.nodes.admin import create_node
from native_backend.nodes.answers import Answer, Commanded, NodeFound, Published, Settled
from native_backend.nodes.commands import Command, What
from native_backend.nodes.durable import QUEUE
from native_backend.nodes.durable_terms import EXCLUSIVE, DurableTerms
from native_backend.nodes.node import Node
from native_backend.nodes.properties import DEFAULT, Properties
from native_backend.nodes.words import NodeKind, Operation
from native_backend.operations.route import Wanted
from native_backend.realm import Realm, Subscribe
from native_backend.state.ack_state import AckState
from native_backend.subscriptions.partitioned import by_partition, eids_of, packed_eid, partition_of
from native_backend.subscriptions.subscription import Mode, Subscribed, Subscription
from tests.kit.patience import until
from tests.kit.realm.inside import context_of, shard_of
from tests.kit.realm.life import Life
from tests.kit.realm.opening import open_realm
from tests.kit.realm.raised_mistakes import raise_mistakes
from tests.kit.realm.steered_clock import SteeredClock
from tests.kit.realm.worlds import SimulatedWorld, World, pass_seconds, wait_for

A = TypeVar("A")
BYTES = 1 << 20


class WorldClock:
    """Simulated time: the world's."""

    def __init__(self, world: SimulatedWorld) -> None:
        self._world = world

    def monotonic_s(self) -> float:
        return self._world.now_ms() / 1000

    def epoch_us(self) -> int:
        return self._world.now_ms() * 1000


@dataclass(slots=True, eq=False)
class Consumer:
    """A link: what it has and did not settle, with seqs and what was said of earlier attempts. The events of a node of
    several stores are named by their places."""

    realm: RealmProcess
    subscription: Subscription
    seqs: dict[int, int] = field(default_factory=dict)
    bodies: dict[int, bytes] = field(default_factory=dict)
    failed: dict[int, int] = field(default_factory=dict)
    again: dict[int, bool] = field(default_factory=dict)

    def take(self, count: int = 1000, size: int = BYTES) -> list[int]:
        """What there is now."""
        delivered = self.subscription.take(count, size)
        if delivered is None:
            return []
        assert 0 < len(delivered.eids) == len(delivered.values) <= count
        eids = [packed_eid(delivered.partition, eid) for eid in delivered.eids]
        for at, eid in enumerate(eids):
            self.seqs[eid] = self.realm.next_seq()
            self.bodies[eid] = delivered.values[at]
            self.failed[eid] = delivered.failed[at] if delivered.failed else 0
            self.again[eid] = delivered.again[at] if delivered.again else False
        return eids

    def receive(self, count: int, size: int = BYTES) -> list[int]:
        """Exactly so many, whenever they come."""
        eids: list[int] = []

        def enough() -> bool:
            eids.extend(self.take(count - len(eids), size))
            return len(eids) >= count

        self.realm.until(enough, f"{count} events")
        return eids

    def drain(self) -> list[int]:
        """All that there is: until nothing comes, and the subscription has looked at all that was stored. Also what
        comes in some turns more, which would be wrong."""
        eids: list[int] = []

        def is_over() -> bool:
            more = self.take()
            eids.extend(more)
            return not more and self.subscription.is_searched()

        self.subscription.search_anew()
        self.realm.until(is_over, "the end of what there is")
        return eids + self.linger(20)

    def linger(self, turns: int) -> list[int]:
        """What comes in so many turns."""
        eids: list[int] = []
        for _ in range(turns):
            eids += self.take()
            self.realm.turn()
        return eids

    def start(self, operation: Operation, eids: list[int], **how: Any) -> object:
        """Settle without waiting; what the answers, one a store, will be known by."""
        owner = object()
        for some in stores_of(eids) or [eids]:
            self.subscription.settle(SettlementRequest(operation, **how), some, [self.seqs[eid] for eid in some], owner)
        self.realm.asked[owner] = max(1, len(stores_of(eids)))
        return owner

    def reserve(self, eids: list[int]) -> bool:
        held = [self.subscription.reserve(some) for some in stores_of(eids)]
        return all(held)

    def unreserve(self, eids: list[int]) -> None:
        for some in stores_of(eids):
            self.subscription.unreserve(some)

    def retire(self, operation: Operation, eids: list[int], **how: Any) -> list[Settlement]:
        """What is held, for a commit; one a store."""
        settling = SettlementRequest(operation, reserved=True, **how)
        parts = [self.subscription.retire(settling, some, [self.seqs[eid] for eid in some]) for some in stores_of(eids)]
        retirements = [settlement for settlement in parts if settlement is not None]
        assert len(retirements) == len(parts)
        return retirements

    def settle(self, operation: Operation, eids: list[int], **how: Any) -> str:
        owner = self.start(operation, eids, **how)
        return self.realm.settled(owner)

    def acknowledge(self, eids: list[int]) -> None:
        assert self.settle("acknowledge", eids) == "done"


def holding(text: str) -> Wanted | None:
    """A selector for tests: the values that hold this text. `!` is none."""
    return None if text == "!" else lambda _, values: [text.encode() in value for value in values]


def stores_of(places: list[int]) -> list[list[int]]:
    """Store by store."""
    return [[places[at] for at in indexes] for indexes in by_partition(places).values()]


def by_store(places: list[int]) -> dict[int, list[int]]:
    """What comes of one store comes in its order; of several it comes in any."""
    return {partition_of(some[0]): some for some in stores_of(places)}


class RealmProcess:
    """A realm, polled."""

    def __init__(self, world: World, prefix: str, limits: RealmLimits | None = None, partitions: int = 1) -> None:
        """`partitions`: of every node that it creates."""
        self.world = world
        self.prefix = prefix
        self.partitions = partitions
        self.limits = limits or RealmLimits()
        self.log: Log = world.open()
        if isinstance(world, SimulatedWorld):
            worker = InlineWorker(lambda seconds: pass_seconds(world, seconds))
            self.workers = Workers(worker, worker, worker)
            self.clock = SteeredClock(WorldClock(world))
        else:
            self.workers, self.clock = Workers.threads(), SteeredClock(SystemClock())
        self.run = f"run-{uuid.uuid4().hex[:6]}"
        self.liveness = Life(self.run)
        parts = self.log, prefix, self.run, self.clock, self.workers, limits
        self.realm = Realm(*parts, selecting=holding, liveness=self.liveness)
        self.is_woken = Event()
        self.realm.on_ready(self.is_woken.set)
        raise_mistakes(self.realm)
        self.answers: list[Answer] = []
        self.asked: dict[object, int] = {}  # by owner: of how many stores
        self._seq = 0
        self.dead = False

    def open(self) -> RealmProcess:
        open_realm(self.realm)
        return self

    def waits_by(self, meanwhile: Callable[[], None]) -> None:
        """Whenever it waits for another owner's sign of life, that is done instead of waiting."""

        def pause(_: float) -> None:
            meanwhile()
            self.world.pass_time()

        setattr(self.workers.lease, "pause", pause)  # noqa: B010

    def follow(self) -> RealmProcess:
        """Open although another process owns the realm: when this one first waits, a lease passes by its clock."""
        lapses = iter([self.limits.lease_s])
        self.waits_by(lambda: self.clock.lapse(next(lapses, 0.0)))
        return self.open()

    def next_seq(self) -> int:
        self._seq += 1
        return self._seq

    def turn(self) -> None:
        self.answers += self.realm.poll()
        wait_for(self.is_woken, self.world)

    def until(self, condition: Callable[[], bool], what: str, turn: Callable[[], None] | None = None) -> None:
        until(condition, what, pause=turn or self.turn)

    def answer(self, kind: type[A], matches: Callable[[A], bool] = lambda _: True) -> A:
        """The next answer of that kind; the others stay."""
        answers: list[A] = []

        def there() -> bool:
            for answer in self.answers:
                if isinstance(answer, kind) and matches(answer):
                    self.answers.remove(answer)
                    answers.append(answer)
                    return True
            return False

        self.until(there, f"an answer {kind.__name__}")
        return answers[0]

    def settled(self, owner: object) -> str:
        """What every store answered; where they differ, all of it."""
        count = self.asked.pop(owner, 1)
        answers = {self.answer(Settled, lambda answer: answer.owner is owner).answer for _ in range(count)}
        return ", ".join(sorted(answers))

    def create(self, name: str, kind: NodeKind = "queue", properties: Properties = DEFAULT) -> Node:
        """A node, of as many partitions as this realm's nodes have."""
        if self.partitions > 1:
            properties = replace(properties, partitions=self.partitions)
        if properties != DEFAULT:
            create_node(self.log, self.prefix, name, kind, self.clock, properties)
            made = self.find(name)
            assert made is not None
            return made
        owner = object()
        self.realm.create_node(name, kind, owner)
        reply = self.answer(NodeFound, lambda answer: answer.owner is owner)
        assert reply.node is not None, reply
        return reply.node

    def find(self, name: str) -> Node | None:
        owner = object()
        self.realm.find_node(name, owner)
        return self.answer(NodeFound, lambda answer: answer.owner is owner).node

    def command(self, what: What, node: Node, durable: str = QUEUE, eid: int = 0, **more: Any) -> Commanded:
        """Carried out by this process."""
        owner = object()
        until_us = self.clock.epoch_us() + 60_000_000
        command = Command(uuid.uuid4().hex, what, node.name, node.store, durable, until_us, eid, **more)
        self.realm.execute(command, owner)
        return self.answer(Commanded, lambda answer: answer.owner is owner)

    def publish(self, node: Node, bodies: list[bytes], keys: list[bytes] | None = None) -> list[int]:
        """All stored; their EIDs."""
        if self.partitions == 1:
            return self._publish(node, bodies, keys)
        places = [0] * len(bodies)
        count = node.partitions
        for part in node.parts:
            # Not simply by turns: a test that takes every third event would take them of one store.
            mine = [at for at in range(len(bodies)) if (at + at // count) % count == part.partition]
            some_keys = [keys[at] for at in mine] if keys else None
            for at, eid in zip(mine, self._publish(part, [bodies[at] for at in mine], some_keys), strict=True):
                places[at] = packed_eid(part.partition, eid)
        return places

    def _publish(self, node: Node, bodies: list[bytes], keys: list[bytes] | None) -> list[int]:
        owner = object()
        if not bodies:
            return []
        self.realm.publish(node, keys or [b"key"] * len(bodies), bodies, owner)
        eids: list[int] = []
        while len(eids) < len(bodies):
            published = self.answer(Published, lambda answer: answer.owner is owner)
            assert published.answer == "stored", published
            assert published.first == len(eids)
            eids += published.eids
        return eids

    def append(self, node: Node, bodies: list[bytes]) -> list[int]:
        """By the log alone, as another program would."""
        self.log.append(Append(node.topic, node.partition, [b"key"] * len(bodies), bodies))
        eids: list[int] = []

        def stored() -> bool:
            for completion in self.log.poll():
                assert isinstance(completion, Appended)
                assert completion.failure is None, completion
                eids.extend(completion.offsets)
            self.world.pass_time()
            return len(eids) == len(bodies)

        self.until(stored, "what was appended", self.world.pass_time)
        return eids

    def subscribed(
        self,
        node: Node,
        mode: Mode,
        durable: str | None = None,
        link: object = None,
        terms: DurableTerms = EXCLUSIVE,
        selection: Selection | None = None,
    ) -> Subscribed:
        owner = object()
        self.ask(node, mode, durable, owner, terms, link, selection)
        return self.subscribed_to(owner)

    def ask(
        self,
        node: Node,
        mode: Mode,
        durable: str | None,
        owner: object,
        terms: DurableTerms,
        link: object = None,
        selection: Selection | None = None,
    ) -> None:
        """Subscribe without waiting."""
        if selection is not None:
            terms = replace(terms, selector=selection.text)
        self.realm.subscribe(Subscribe(node, mode, durable, link or owner, terms=terms, selection=selection), owner)

    def subscribed_to(self, owner: object) -> Subscribed:
        return self.answer(Subscribed, lambda answer: answer.owner is owner)

    def consumer(
        self,
        node: Node,
        mode: Mode = "queue",
        durable: str | None = None,
        link: object = None,
        terms: DurableTerms = EXCLUSIVE,
        selection: Selection | None = None,
    ) -> Consumer:
        subscribed = self.subscribed(node, mode, durable, link, terms, selection)
        assert subscribed.subscription is not None, subscribed
        return Consumer(self, subscribed.subscription)

    def state(self, node: Node, durable: str = QUEUE) -> AckState:
        """Of one store."""
        dispatch = shard_of(self.realm).opened(node, durable)
        assert dispatch is not None
        return dispatch.state

    def states(self, node: Node, durable: str = QUEUE) -> list[AckState]:
        """Of each store."""
        return [self.state(part, durable) for part in node.parts]

    def has_ended(self, node: Node, places: list[int], durable: str = QUEUE) -> bool:
        """Whether all of a durable is terminal up to these, the last events of their stores."""
        ends = {at: eids_of(some)[-1] + 1 for at, some in by_store(sorted(places)).items()}
        return all(self.states(node, durable)[at].low == end for at, end in ends.items())

    def journal(self) -> list[dict[str, Any]]:
        """Every record of the journal; a log may show the last ones a little late."""
        topic, end = f"{self.prefix}.journal", context_of(self.realm).journal.next
        self.until(lambda: self.log.control.bounds(topic, 0)[1] >= end, "the journal's last record")
        return [record for _, record in tail(self.log, topic, 0)]

    def close(self) -> None:
        if not self.dead:
            self.dead = True
            self.realm.close(5.0)

    def kill(self) -> None:
        """The process ends without a word. What its log had under way is stored or not."""
        self.dead = True
        Life.ended.add(self.run)
        for worker in self.workers.each():
            worker.close(5.0)
        kill = getattr(self.log, "kill", None)
        if kill is not None:
            kill()
        else:
            self.log.close(5.0)
