"""Counting beside what goes on: what is stored during a look, how much is read at a time, and what dates cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from native_backend.dispatch.context import RealmContext
from native_backend.events.store_events import StoreEvents
from native_backend.limits import RealmLimits
from native_backend.log.port import Records
from native_backend.nodes.node import Node
from native_backend.nodes.properties import Properties
from native_backend.shard.counting import Counting
from native_backend.state.delayed import DelayedEvents
from native_backend.state.mistakes import Mistakes
from native_backend.state.timers import Timers

NOW_MS = 1_790_000_000_000
HOUR_MS = 3_600_000
KEY = b"1;basic;run;1;1;4;;0;;0"


@dataclass
class Looks:
    """A control thread whose jobs run when the test says so, and a log of events without gaps beside it."""

    end: int = 0
    value: bytes = b"x"
    reads: list[tuple[str, int]] = field(default_factory=list)
    now_s: float = 0.0
    jobs: list[tuple[Callable[[], Any], Callable[[Any], None]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.timers = Timers(self, Mistakes(self))

    def submit(self, job: Callable[[], Any], done: Callable[[Any], None]) -> None:
        self.jobs.append((job, done))

    @property
    def control(self) -> Looks:
        """The realm asks it nothing but control calls here."""
        return self

    def bounds(self, *_: object) -> tuple[int, int]:
        return 0, self.end

    def holds_only(self, topic: str, partition: int, start: int, end: int, records: int, *_: object) -> bool:
        return end - start == records

    def read_range(self, topic: str, partition: int, start: int, count: int, *_: object) -> Records:
        offsets = [*range(start, min(start + count, self.end))]
        self.reads.append((topic, len(offsets)))
        every = len(offsets)
        return Records(offsets, [NOW_MS] * every, [KEY] * every, [self.value] * every, offsets[-1] + 1)

    def monotonic_s(self) -> float:
        return self.now_s

    def epoch_us(self) -> int:
        return NOW_MS * 1000


@dataclass
class Gaps(Looks):
    """The log has these offsets, and nothing at those between them."""

    offsets: list[int] = field(default_factory=list)

    def holds_only(self, topic: str, partition: int, start: int, end: int, records: int, *_: object) -> bool:
        return sum(start <= offset < end for offset in self.offsets) == records


def counting(looks: Looks, stores: int = 1, state: SimpleNamespace | None = None, **limits: Any) -> RealmContext:
    """`state`: that of a queue's consumers; without it the nodes are channels."""
    kind = "queue" if state else "channel"
    nodes = {
        store: SimpleNamespace(
            name=f"n{store}", topic=f"t{store}", partition=0, store=store, kind=kind, properties=Properties(),
            part=lambda _: None,
        )
        for store in range(1, stores + 1)
    }  # fmt: skip
    metadata = SimpleNamespace(position=1, stores=nodes, on_changed=[], on_made=[], durable=lambda *_: None)
    journal = SimpleNamespace(fenced=False)
    services = SimpleNamespace(
        log=looks, clock=looks, worker=looks, limits=RealmLimits(**limits), metadata=metadata, events={},
        journal=journal, timers=looks.timers,
    )  # fmt: skip
    Counting(cast(RealmContext, services), lambda *_: cast(Any, state))
    return cast(RealmContext, services)


def go_on(looks: Looks) -> None:
    """Until nothing is to be done at this time."""
    looks.timers.run()
    while looks.jobs:
        job, done = looks.jobs.pop(0)
        done(job())
        looks.timers.run()


def test_what_is_stored_during_a_look_is_not_taken_for_a_loss() -> None:
    looks = Looks(end=10)
    services = counting(looks, count_round_s=1.0)
    go_on(looks)
    [events] = services.events.values()
    assert events.known
    assert events.messages(NOW_MS) == 10
    looks.now_s += 2.0
    looks.timers.run()
    [(job, done)] = looks.jobs
    looked = job()
    looks.jobs.clear()
    looks.end = 14
    events.stored([10, 11, 12, 13], [KEY] * 4, NOW_MS)
    looks.reads.clear()
    done(looked)
    assert events.known
    assert events.messages(NOW_MS) == 14
    looks.now_s += 2.0
    go_on(looks)
    assert looks.reads == [], "nothing was read again"
    looks.end = 5
    looks.now_s += 2.0
    go_on(looks)
    assert not events.known, "this is a loss"


def test_what_a_queues_consumers_have_taken_is_not_read_again() -> None:
    looks, state = Gaps(), SimpleNamespace(low=0)
    services = counting(looks, state=state)
    go_on(looks)
    [events] = services.events.values()
    eids = [*range(1, 40_001, 2)]
    looks.offsets, looks.end = eids, 40_001
    events.stored(eids, [KEY] * len(eids), NOW_MS)
    for taken in (9_000, 18_000):
        state.low = eids[taken]
        looks.now_s += 2.0
        go_on(looks)
        assert events.map.count(state.low, looks.end) == len(eids) - taken
    assert looks.reads == []
    events.transacted([40_003], [KEY], NOW_MS)  # its mark is at 40,004
    looks.offsets, looks.end = [*eids, 40_003, 40_004], 40_005
    state.low = 40_003
    looks.now_s += 2.0
    go_on(looks)
    assert events.is_open(NOW_MS), "its mark was not seen yet"


@pytest.mark.parametrize("another_is_gone", [False, True])
def test_a_new_store_is_looked_at_before_much_is_stored_there(another_is_gone: bool) -> None:
    looks = Looks(end=10)
    services = counting(looks, stores=3)
    go_on(looks)
    if another_is_gone:
        del services.metadata.stores[1]
    new = SimpleNamespace(name="n4", topic="t4", partition=0, store=4, kind="channel", properties=Properties())
    cast(Any, services.metadata).stores[4] = new
    for listener in services.metadata.on_made:
        listener()
    looks.reads, looks.end = [], 0
    go_on(looks)
    events = services.events["t4", 0]
    assert events.known
    looks.end = 4
    events.stored([0, 1, 2, 3], [KEY] * 4, NOW_MS)
    looks.now_s += 2.0
    go_on(looks)
    assert events.messages(NOW_MS) == 4
    assert not [read for read in looks.reads if read[0] == "t4"], "what this process stored is not read again"


def test_one_job_reads_about_as_much_as_it_may_however_many_stores_there_are() -> None:
    looks = Looks(end=50, value=b"x" * 1000)
    services = counting(looks, stores=12, count_bytes=100_000)
    looks.timers.run()
    job, done = looks.jobs.pop()
    looked = job()
    assert len(looked) == 2, "each has 50,000 octets"
    done(looked)
    go_on(looks)
    assert [store.messages(NOW_MS) for store in services.events.values()] == [50] * 12


def test_dates_of_what_has_ended_are_forgotten() -> None:
    node = SimpleNamespace(properties=Properties(ttl_ms=24 * HOUR_MS))
    events = StoreEvents(cast(Node, node))
    events.begin(0, 0)
    now_ms, most = NOW_MS, 0
    for at in range(20_000):
        now_ms += 5_000  # each in a second of its own
        events.stored([at], [KEY], now_ms)
        if at % 100 == 99:
            events.begins_at(0, at - 50)
            most = max(most, len(events._expiries))
    assert most < 2_000
    assert events.messages(now_ms) <= 100 + 4096
    events.pass_time(now_ms + 25 * HOUR_MS)
    assert not events.is_dated


def test_dates_of_one_second_and_neighbours_are_one_range() -> None:
    events = StoreEvents(cast(Node, SimpleNamespace(properties=Properties(ttl_ms=HOUR_MS))))
    events.begin(0, 0)
    for at in range(1000):
        events.stored([at], [KEY], NOW_MS + at // 100)
    assert len(events._expiries) <= 2
    assert events.messages(NOW_MS + HOUR_MS - 1) == 1000
    assert events.messages(NOW_MS + HOUR_MS + 2000) == 0


def test_what_comes_due_while_it_is_gone_through_breaks_nothing() -> None:
    delays = DelayedEvents()
    for at in range(10):
        delays.add(at, at, NOW_MS + 100 * at + 100)
    eids = []
    for first, _ in delays.later(NOW_MS):
        eids.append(first)
        [*delays.due(NOW_MS + 100 * first + 500)]
    assert eids[0] == 0
    assert len(eids) < 10
    assert [first for first, _ in delays.later(NOW_MS + 10_000)] == []


@pytest.mark.parametrize("bound", [0, 5, 50])
def test_delays_forget_what_lies_below(bound: int) -> None:
    delays = DelayedEvents(1000)
    delays.add(0, 9, NOW_MS)
    delays.add(10, 10, NOW_MS + HOUR_MS)
    delays.remove_below(bound)
    kept = [eid for _, first, last in delays for eid in range(first, last + 1)]
    assert kept == [eid for eid in range(11) if eid >= bound]
    assert len(delays) == len({eid > 9 for eid in kept})
