"""When the journal's next transaction begins, and what it carries: over a log that only takes note."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from native_backend.journal.journal import Journal
from native_backend.journal.settlement import Settlement
from native_backend.limits import RealmLimits
from native_backend.log.port import Transacted, Write
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


def test_the_journal_gathers_while_the_log_rests() -> None:
    clock, log, answers = StoppedClock(), NotingLog(), list[Any]()
    journal: Any = Journal(log, "um", "run", clock, None, RealmLimits(), answers.append)  # type: ignore[arg-type]

    def settle(eid: int) -> None:
        journal.add(
            Settlement(QuietKeeper(), None, "acknowledge", False, False, "", [(eid, eid + 1, eid, eid + 1)], 1, eid)
        )
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
