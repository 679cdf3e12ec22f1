"""How long the calls of a lease may take while a realm opens, and what a lost one still does."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from native_backend.journal.lease_records import LeaseRecords, encode_lease, lease_topic
from native_backend.limits import RealmLimits
from native_backend.log.port import Log, Records
from native_backend.state.timers import Timer
from tests.kit.patience import HANG_S
from tests.kit.realm.inside import context_of
from tests.kit.realm.other_control import ControlledLog, OtherControl
from tests.kit.realm.realm_process import RealmProcess
from tests.kit.realm.worlds import SimulatedWorld, SqliteWorld

LIMITS = RealmLimits(control_deadline_s=10.0, lease_s=5.0)


class LeaseReads(OtherControl):
    """The deadlines of all reads of the lease from its beginning on."""

    def __init__(self, log: Any, deadlines_s: list[float]) -> None:
        super().__init__(log.control)
        self._deadlines_s = deadlines_s

    def read_range(self, topic: str, partition: int, start: int, count_max: int, deadline_s: float = 10.0) -> Records:
        if topic == lease_topic("u") and start == 0:
            self._deadlines_s.append(deadline_s)
        records: Records = self._control.read_range(topic, partition, start, count_max, deadline_s)
        return records


class WatchedWorld(SimulatedWorld):
    def __init__(self) -> None:
        super().__init__("simulated", seed=7)
        self.deadlines_s: list[float] = []

    def open(self) -> Log:
        log: Any = super().open()
        return ControlledLog(log, LeaseReads(log, self.deadlines_s))  # type: ignore[return-value]


def test_while_a_realm_opens_a_broker_may_stand_still_for_longer_than_half_a_lease() -> None:
    world = WatchedWorld()
    RealmProcess(world, "u", LIMITS).open()
    assert len(world.deadlines_s) >= 2, "acquired, and confirmed before the claim"
    assert set(world.deadlines_s) == {LIMITS.control_deadline_s}


def test_a_lease_that_is_lost_is_not_due_in_every_turn() -> None:
    process = RealmProcess(SimulatedWorld("simulated", seed=7), "u", LIMITS).open()
    lease, calls = context_of(process.realm).lease, list[None]()
    lease.on_lost = lambda: calls.append(None)
    lease.lost = True
    process.until(lambda: bool(calls), "the next look at it")
    for _ in range(2000):
        process.turn()
    assert len(calls) == 1


def test_no_look_waits_for_a_trim(tmp_path: Path) -> None:
    world = SqliteWorld(tmp_path)
    process = RealmProcess(world, "u", RealmLimits(lease_s=20.0, lease_look_s=0.02)).open()
    lease, seen = context_of(process.realm).lease, LeaseRecords()
    tried, over = threading.Event(), threading.Event()

    def hang(*_: object) -> None:
        tried.set()
        over.wait(HANG_S)

    setattr(process.log.control, "trim", hang)  # noqa: B010
    for _ in range(101):
        process.log.control.put(lease_topic("u"), b"other", encode_lease("ask", seen, "other", {}, 0, 20.0))
    process.until(tried.is_set, "a trim")
    process.clock.lapse(20.0)
    assert not lease.held
    process.until(lambda: lease.held, "a look")
    over.set()
    process.close()


def test_the_thread_that_keeps_a_lease_during_recovery_names_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is due by the clock belongs to the thread that polls the realm."""
    process = RealmProcess(SimulatedWorld("simulated", seed=7), "u", LIMITS)
    callers, looks, by = set[threading.Thread](), list[object](), Timer.by

    def noted(timer: Timer, due_s: float) -> None:
        callers.add(threading.current_thread())
        by(timer, due_s)

    @contextmanager
    def repeated(job: Callable[[], Any], done: Callable[[Any], None], _: float) -> Iterator[None]:
        def look() -> None:
            looks.append(job())
            done(looks[-1])

        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
        yield

    monkeypatch.setattr(Timer, "by", noted)
    monkeypatch.setattr(process.workers.lease, "repeated", repeated)
    process.open()
    assert looks and callers == {threading.current_thread()}
