"""The order of what a turn does."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from native_backend.dispatch.context import RealmContext
from native_backend.state.mistakes import Mistakes
from native_backend.state.timers import Timers
from native_backend.turn import Turn
from tests.kit.realm.stopped_clock import StoppedClock


def test_a_process_that_stood_still_looks_at_its_lease_before_the_log_answers_and_links_wake() -> None:
    clock, done = cast(Any, StoppedClock()), list[str]()

    def does(what: str) -> Any:
        return lambda *_: done.append(what)

    mistakes = Mistakes(clock)
    timers = Timers(clock, mistakes)
    timers.timer("lease", does("lease")).soon()
    context: Any = SimpleNamespace(
        clock=clock,
        mistakes=mistakes,
        timers=timers,
        journal=SimpleNamespace(advance=does("journal")),
        windows=SimpleNamespace(look=does("links"), turn=0),
        wait_lists=SimpleNamespace(has_timers=False, pending=False),
        log=SimpleNamespace(poll=lambda: done.append("log") or []),  # type: ignore[func-returns-value]
    )
    workers: Any = SimpleNamespace(each=lambda: [SimpleNamespace(completed=does("worker"))])
    turn = Turn(cast(RealmContext, context), workers, cast(Any, None), cast(Any, None))
    turn.take()
    assert done == ["worker", "lease", "log", "journal", "links"]
    done.clear()
    turn.take()
    assert done == ["worker", "log", "journal", "links"], "nothing is due by the clock"
