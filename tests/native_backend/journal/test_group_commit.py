"""When the journal's next transaction begins, and what it carries: over a log that only takes note."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from native_backend.journal.journal import Journal
from native_backend.journal.settlement import Settlement, Unit
from native_backend.limits import RealmLimits
from native_backend.log.port import Failure, Transacted, Write
from tests.kit.realm.stopped_clock import StoppedClock


class NotingLog:
    poll_interval_s = 0.001

    def __init__(self) -> None:
        self.handed: list[object] = []

    def transact(self, _shard: str, _writes: Sequence[Write], owner: object) -> None:
        self.handed.append(owner)


class QuietKeeper:
    def keys(self) -> tuple[str, str, int]:
        return "news", "one", 7

    def settled(self, settlement: Settlement) -> None: ...
    def restore(self, settlement: Settlement) -> None: ...


def settlement(eid: int) -> Settlement:
    return Settlement(QuietKeeper(), None, "acknowledge", False, False, "", [(eid, eid + 1, eid, eid + 1)], 1, eid)


def test_the_journal_gathers_while_the_log_rests() -> None:
    clock, log, answers = StoppedClock(), NotingLog(), list[Any]()
    journal: Any = Journal(log, "um", "run", clock, None, RealmLimits(), answers.append)  # type: ignore[arg-type]

    def settle(eid: int) -> None:
        journal.add(settlement(eid))
        journal.advance()

    settle(1)
    assert len(log.handed) == 1
    clock.now_s += 0.010  # longer than the interval: without a rest the next would begin at once
    journal.completed(Transacted(log.handed[0], [0], rest_s=0.004))
    settle(2)
    clock.now_s += 0.003
    settle(3)
    assert len(log.handed) == 1, "it would only wait in the log, and carry less"
    clock.now_s += 0.002
    journal.advance()
    assert len(log.handed) == 2
    journal.completed(Transacted(log.handed[1], [1]))
    assert [answer.owner for answer in answers] == [1, 2, 3]
    clock.now_s += 0.010
    settle(4)
    assert len(log.handed) == 3, "a log that needs no rest is not waited for"


def test_without_room_commits_are_refused_and_all_else_waits() -> None:
    """Also a commit that comes while settlements wait; when there is room they are stored, in order."""
    clock, log, answers = StoppedClock(), NotingLog(), list[Any]()
    limits = RealmLimits()
    journal: Any = Journal(log, "um", "run", clock, None, limits, answers.append)  # type: ignore[arg-type]
    full = Failure("capacity-reached", "", "SQLITE_FULL")
    posted = [Write("um.node.news", 0, b"k", b"v")]

    def fail() -> None:
        journal.completed(Transacted(log.handed[-1], [], full))
        journal.advance()

    journal.add(settlement(1))
    journal.add_unit(Unit([], posted, "first"))
    journal.add_unit(Unit([settlement(2)], [], "copies", settles=True))
    journal.advance()
    for _ in range(2):  # all of it, then the commit by itself
        fail()
    assert [(answer.owner, answer.answer) for answer in answers] == [("first", "capacity-reached")]
    journal.add_unit(Unit([], posted, "second"))
    journal.advance()
    assert len(log.handed) == 2, "what waits is not tried without a pause"
    clock.now_s += limits.retry_interval_s
    journal.advance()
    for _ in range(2):
        fail()
    assert [answer.owner for answer in answers] == ["first", "second"]
    assert journal.busy
    clock.now_s += limits.retry_interval_s
    journal.advance()
    journal.completed(Transacted(log.handed[-1], [7]))
    assert [(answer.owner, answer.answer) for answer in answers[2:]] == [(1, "done"), ("copies", "done")]
    assert not journal.busy
