"""A smaller world, of transactions alone: a realm on a disk that goes wrong, killed and opened again; one seed decides.

Events are taken from a queue of one store or of several (partitions, or levels of priority), and in units with new
events for two other nodes acknowledged, or let go. At the end the disk says what became of each unit. `live` gives the
violations in words. Events of the queue are named by their places. Times are milliseconds of the world.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from random import Random

from native_backend.journal.journal import tail
from native_backend.journal.settlement import Settlement, SettlementRequest
from native_backend.limits import RealmLimits
from native_backend.log.simulated.driver import SimulatedLog
from native_backend.log.simulated.faults import NONE
from native_backend.nodes.admin import create_node
from native_backend.nodes.answers import Committed
from native_backend.nodes.properties import Properties
from native_backend.realm import Posting
from native_backend.subscriptions.partitioned import packed_eid, partition_of
from tests.kit.realm.realm_process import Consumer, RealmProcess
from tests.kit.realm.worlds import SimulatedWorld
from tests.simulation.shape import WEATHERS

STEPS = 50
PATIENCE_MS = 4_000
OUTPUTS = ("left", "right")
SHAPES = (Properties(), Properties(partitions=3), Properties(priority_levels=3))
LIMITS = RealmLimits(
    retain_s=0.05,
    evidence_s=0.05,
    trim_interval_s=0.02,
    retry_interval_s=0.005,
    snapshot_records=8,
    lease_look_s=0.05,
)


@dataclass(slots=True, eq=False)
class Unit:
    """`answer` "" while no one has answered, `let go` when it was never committed."""

    posted: list[tuple[str, bytes]]
    taken: list[int]
    answer: str = ""


@dataclass(slots=True)
class Found:
    """What the disk holds, and what a last consumer still gets."""

    stored: Counter[tuple[str, bytes]] = field(default_factory=Counter)
    acknowledged: set[int] = field(default_factory=set)
    first: dict[int, int] = field(default_factory=dict)  # of the queue's events that are kept, by partition
    left: set[int] = field(default_factory=set)


class Trade:
    """One seed."""

    def __init__(self, seed: int) -> None:
        self.random = Random(f"{seed} trade")
        self.weather = replace(WEATHERS[self.random.choice([*WEATHERS])], fence=0.0)  # the lease's affair
        self.world = SimulatedWorld("simulated", seed=seed)
        self.units: list[Unit] = []
        self.shape = self.random.choice(SHAPES)
        self.stored: set[int] = set()  # places of the queue
        self.violations: list[str] = []
        self.kills = 0
        self.trimmed = 0  # where the journal began at last
        self._under_way: dict[object, Unit] = {}
        self._number = 0
        self._acknowledged: set[int] = set()  # as the journal said below `_read`, which may be trimmed by now
        self._read = 0
        self._open()

    def _open(self) -> None:
        self.realm = RealmProcess(self.world, "u", LIMITS).open()
        if not self.kills:
            create_node(self._log, "u", "orders", "queue", self.realm.clock, self.shape)
        node = self.realm.find("orders")
        assert node is not None
        self.queue = node
        for name in OUTPUTS:
            self.realm.create(name)
        self.consumer: Consumer = self.realm.consumer(self.queue)
        self._outstanding: list[int] = []

    @property
    def _log(self) -> SimulatedLog:
        assert isinstance(self.realm.log, SimulatedLog)
        return self.realm.log

    def live(self) -> list[str]:
        for _ in range(STEPS):
            self._publish()
            self._log.faults = self.weather
            for _ in range(self.random.randint(1, 25)):
                self._turn()
            self._transact()
            if self.random.random() < 0.08:
                self._kill()
            self._log.faults = NONE
            self._follow()
        until_ms = self.world.now_ms() + PATIENCE_MS
        while self._under_way and self.world.now_ms() < until_ms:
            self._turn()
            self._follow()
        for unit in self._under_way.values():
            self.violations.append(f"unit {self.units.index(unit)} was never answered")
        self._kill()
        return self.violations + self._check(self._look())

    def _turn(self) -> None:
        self.realm.turn()
        for eid in self.consumer.take(self.random.randint(1, 9)):
            self._outstanding.append(eid)
            if any(eid in unit.taken for unit in self.units if unit.answer == "done"):
                self.violations.append(f"event {eid} came again after its commit")
        for answer in [reply for reply in self.realm.answers if isinstance(reply, Committed)]:
            self.realm.answers.remove(answer)
            unit = self._under_way.pop(answer.owner)
            unit.answer = answer.answer
            if answer.answer not in ("done", "indeterminate"):
                self._let_go(unit)

    def _publish(self) -> None:
        count = self.random.randint(0, 6)
        if count:
            part = self.random.choice(self.queue.parts)
            eids = self.realm.publish(part, [self._body() for _ in range(count)])
            self.stored.update(packed_eid(part.partition, eid) for eid in eids)

    def _body(self) -> bytes:
        self._number += 1
        return b"%d" % self._number

    def _transact(self) -> None:
        self.random.shuffle(self._outstanding)
        count = self.random.randint(0, min(6, len(self._outstanding)))
        taken, self._outstanding = self._outstanding[:count], self._outstanding[count:]
        posted = [(name, self._body()) for name in OUTPUTS for _ in range(self.random.randint(0, 3))]
        if not taken and not posted:
            return
        unit = Unit(posted, taken)
        self.units.append(unit)
        if not all(self.consumer.subscription.reserve(places) for places in _by_store(taken)):
            self.violations.append(f"{taken} could not be held")
            return
        if self.random.random() < 0.25:
            unit.answer = "let go"
            self._let_go(unit)
            return
        settlements: list[Settlement] = []
        for places in _by_store(taken):
            seqs = [self.consumer.seqs[eid] for eid in places]
            retirements = self.consumer.subscription.retire(
                SettlementRequest("acknowledge", reserved=True), places, seqs
            )
            if retirements is None:
                self.violations.append(f"{places} could not be enlisted")
                return
            settlements.append(retirements)
        owner = object()
        self._under_way[owner] = unit
        self.realm.realm.commit(settlements, self._postings(posted), owner)

    def _postings(self, posted: list[tuple[str, bytes]]) -> list[Posting]:
        postings = []
        for name in OUTPUTS:
            bodies = [body for node, body in posted if node == name]
            node = self.realm.realm.node(name)
            assert node is not None
            if bodies:
                postings.append(Posting(node, [b"key"] * len(bodies), bodies))
        return postings

    def _let_go(self, unit: Unit) -> None:
        for places in _by_store(unit.taken):
            self.consumer.subscription.unreserve(places)
            self._outstanding += places

    def _kill(self) -> None:
        """What was under way is done or not, as a whole."""
        self._log.faults = NONE
        self._follow()
        self.realm.kill()
        self.kills += 1
        self.trimmed = max(self.trimmed, self._log.control.bounds("u.journal", 0)[0])
        self._under_way.clear()
        self._open()

    # -- the end

    def _look(self) -> Found:
        self._follow()
        contents = Found(left={*self.consumer.drain()})
        self._follow()
        contents.acknowledged = self._acknowledged
        for name in OUTPUTS:
            for value in self._log.control.read_range(f"u.node.{name}", 0, 0, 100_000).values:
                contents.stored[name, bytes(value or b"")] += 1
        contents.first = {at: self._log.control.bounds("u.node.orders", at)[0] for at in range(self.queue.partitions)}
        return contents

    def _follow(self) -> None:
        """Read the journal on, before it is trimmed."""
        partitions = {part.store: part.partition for part in self.queue.parts}
        for offset, record in tail(self._log, "u.journal", self._read):
            self._read = offset + 1
            for entry in record["entries"]:
                if (entry["node"], entry["operation"]) == ("orders", "acknowledge"):
                    at = partitions[entry["store"]]
                    for first, last, *_ in entry["runs"]:
                        self._acknowledged.update(packed_eid(at, eid) for eid in range(first, last + 1))

    def _check(self, contents: Found) -> list[str]:
        violations = []
        for number, unit in enumerate(self.units):
            times = [contents.stored[posting] for posting in unit.posted]
            others = {eid for other in self.units if other is not unit for eid in other.taken}
            whole = [bool(count) for count in times]
            whole += [eid in contents.acknowledged for eid in unit.taken if eid not in others]
            summary = f"unit {number}, answered {unit.answer!r}, is there as {whole}"
            if any(count > 1 for count in times):
                violations.append(f"doubled: {summary}")
            if unit.answer == "done" and not all([*whole, *(eid in contents.acknowledged for eid in unit.taken)]):
                violations.append(f"lost: {summary}")
            elif unit.answer in ("", "indeterminate") and any(whole) and not all(whole):
                violations.append(f"torn: {summary}")
            elif unit.answer not in ("done", "", "indeterminate") and any(whole):
                violations.append(f"aborted seen: {summary}")
        ended = contents.acknowledged & self.stored
        firsts = {at: packed_eid(at, first) for at, first in contents.first.items()}
        gone = [event for event in sorted(self.stored - ended) if event < firsts[partition_of(event)]]
        violations += [f"event {event} went before its end" for event in gone]
        missing = self.stored - ended - contents.left
        violations += [f"event {eid} is with no one" for eid in sorted(missing)]
        violations += [f"event {eid} has ended and comes again" for eid in sorted(ended & contents.left)]
        return violations


def _by_store(places: list[int]) -> list[list[int]]:
    """A call speaks of one store; in the order in which they were chosen."""
    stores: dict[int, list[int]] = {}
    for place in places:
        stores.setdefault(partition_of(place), []).append(place)
    return [*stores.values()]
