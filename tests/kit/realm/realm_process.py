"""A gateway for tests: one process's realm on a log, and the verbs that the tests are written in.

Every verb waits for its answer. Seqs count the dispatched events of the run, as a gateway's do.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypeVar

from native_backend.acknowledgement import Acknowledgement
from native_backend.answers import Answer, Commanded, NodeFound, NodeKind, Operation, Published, Settled, Subscribed
from native_backend.clock import Clock, SystemClock
from native_backend.commands import Command, What
from native_backend.control import Control, InlineControl, ThreadControl
from native_backend.durables import QUEUE
from native_backend.journal import tail
from native_backend.limits import RealmLimits
from native_backend.log import Log
from native_backend.nodes import Node
from native_backend.presence import Process, SystemPresence
from native_backend.realm import Realm, Subscribe
from native_backend.selection import Selection
from native_backend.settlement import Settling
from native_backend.spread import place
from native_backend.subscription import Mode, Subscription
from native_backend.terms import EXCLUSIVE, Terms
from tests.native_backend.logs.worlds import SimulatedWorld, World
from tests.patience import until

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


class SteeredClock:
    """A clock whose time of day a test moves forward. Intervals stay: a lease does not lapse by it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ahead_us = 0

    def monotonic_s(self) -> float:
        return self._clock.monotonic_s()

    def epoch_us(self) -> int:
        return self._clock.epoch_us() + self._ahead_us

    def move(self, ms: int) -> None:
        self._ahead_us += ms * 1000


@dataclass(slots=True, eq=False)
class Consumer:
    """A link: what it has and did not settle, with seqs and what was said of earlier attempts. The events of a node of
    several stores are named by their places."""

    gateway: Gateway
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
        eids = [place(delivered.partition, eid) for eid in delivered.eids]
        for at, eid in enumerate(eids):
            self.seqs[eid] = self.gateway.next_seq()
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

        self.gateway.until(enough, f"{count} events")
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
        self.gateway.until(is_over, "the end of what there is")
        return eids + self.linger(20)

    def linger(self, turns: int) -> list[int]:
        """What comes in so many turns."""
        eids: list[int] = []
        for _ in range(turns):
            eids += self.take()
            self.gateway.turn()
        return eids

    def start(self, operation: Operation, eids: list[int], **how: Any) -> object:
        """Settle without waiting; what the answer will be known by."""
        owner = object()
        self.subscription.settle(Settling(operation, **how), eids, [self.seqs[eid] for eid in eids], owner)
        return owner

    def settle(self, operation: Operation, eids: list[int], **how: Any) -> str:
        owner = self.start(operation, eids, **how)
        return self.gateway.settled(owner)

    def acknowledge(self, eids: list[int]) -> None:
        assert self.settle("acknowledge", eids) == "done"


class Life(SystemPresence):
    """Several gateways of a test live in one process; that one was killed shows as the end of a process does."""

    ended: ClassVar[set[str]] = set()

    def __init__(self, run: str) -> None:
        super().__init__()
        self._run = run

    def here(self) -> Process:
        return {**super().here(), "life": self._run}

    def gone(self, process: Process) -> bool:
        return process.get("life") in self.ended or super().gone(process)


class Gateway:
    """A realm, polled."""

    def __init__(self, world: World, prefix: str, limits: RealmLimits | None = None) -> None:
        self.world = world
        self.prefix = prefix
        self.log: Log = world.open()
        self.control: Control
        if isinstance(world, SimulatedWorld):
            self.control, self.clock = InlineControl(lambda _: world.pass_time()), SteeredClock(WorldClock(world))
        else:
            self.control, self.clock = ThreadControl(), SteeredClock(SystemClock())
        self.run = f"run-{uuid.uuid4().hex[:6]}"
        self.presence = Life(self.run)
        self.realm = Realm(self.log, prefix, self.run, self.clock, self.control, limits, presence=self.presence)
        self.answers: list[Answer] = []
        self._seq = 0
        self.dead = False

    def open(self) -> Gateway:
        self.realm.open()
        return self

    def next_seq(self) -> int:
        self._seq += 1
        return self._seq

    def turn(self) -> None:
        self.answers += self.realm.poll()
        self.world.pass_time()

    def until(self, condition: Callable[[], bool], what: str) -> None:
        until(condition, what, pause=self.turn)

    def answer(self, kind: type[A], matches: Callable[[A], bool] = lambda _: True) -> A:
        """The next answer of that kind; the others stay."""
        found: list[A] = []

        def there() -> bool:
            for answer in self.answers:
                if isinstance(answer, kind) and matches(answer):
                    self.answers.remove(answer)
                    found.append(answer)
                    return True
            return False

        self.until(there, f"an answer {kind.__name__}")
        return found[0]

    def settled(self, owner: object) -> str:
        return self.answer(Settled, lambda answer: answer.owner is owner).answer

    def create(self, name: str, kind: NodeKind = "queue") -> Node:
        owner = object()
        self.realm.create_node(name, kind, owner)
        found = self.answer(NodeFound, lambda answer: answer.owner is owner)
        assert found.node is not None, found
        return found.node

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
        owner = object()
        self.realm.publish(node, keys or [b"key"] * len(bodies), bodies, owner)
        eids: list[int] = []
        while len(eids) < len(bodies):
            published = self.answer(Published, lambda answer: answer.owner is owner)
            assert published.answer == "stored", published
            assert published.first == len(eids)
            eids += published.eids
        return eids

    def subscribed(
        self,
        node: Node,
        mode: Mode,
        durable: str | None = None,
        link: object = None,
        terms: Terms = EXCLUSIVE,
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
        terms: Terms,
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
        terms: Terms = EXCLUSIVE,
        selection: Selection | None = None,
    ) -> Consumer:
        subscribed = self.subscribed(node, mode, durable, link, terms, selection)
        assert subscribed.subscription is not None, subscribed
        return Consumer(self, subscribed.subscription)

    def state(self, node: Node, durable: str = QUEUE) -> Acknowledgement:
        dispatch = self.realm._shard.opened(node, durable)
        assert dispatch is not None
        return dispatch.state

    def journal(self) -> list[dict[str, Any]]:
        """Every record of the journal; a log may show the last ones a little late."""
        topic, end = f"{self.prefix}.journal", self.realm._journal.next
        self.until(lambda: self.log.bounds(topic, 0)[1] >= end, "the journal's last record")
        return [record for _, record in tail(self.log, topic, 0)]

    def close(self) -> None:
        if not self.dead:
            self.dead = True
            self.realm.close(5.0)

    def kill(self) -> None:
        """The process ends without a word. What its log had under way is stored or not."""
        self.dead = True
        Life.ended.add(self.run)
        self.control.close(5.0)
        kill = getattr(self.log, "kill", None)
        if kill is not None:
            kill()
        else:
            self.log.close(5.0)
