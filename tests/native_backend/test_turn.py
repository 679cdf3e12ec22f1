"""What of a turn looks at the clock alone, and how often."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from native_backend.dispatch.context import RealmContext
from native_backend.state.mistakes import Mistakes
from native_backend.turn import Turn
from tests.kit.realm.stopped_clock import StoppedClock


class Ticks(StoppedClock):
    """And what was done."""

    def __init__(self) -> None:
        super().__init__()
        self.done: list[str] = []

    def does(self, what: str) -> Any:
        return lambda *_: self.done.append(what)


@pytest.fixture
def ticks() -> Ticks:
    return Ticks()


@pytest.fixture
def turn(ticks: Ticks) -> Turn:
    part = SimpleNamespace(advance=ticks.does("journal"), fenced=False, look=lambda: None, turn=0)
    context = SimpleNamespace(
        clock=ticks,
        mistakes=Mistakes(cast(Any, ticks)),
        lease=SimpleNamespace(advance=ticks.does("lease"), lost=False),
        journal=part,
        windows=part,
        wait_lists=SimpleNamespace(has_timers=False, pending=False),
        log=SimpleNamespace(poll=lambda: ticks.done.append("log") or []),  # type: ignore[func-returns-value]
    )
    idle = SimpleNamespace(advance=lambda *_: None, each=lambda: [])
    every, timed = [("access", ticks.does("access"))], [("diagnosis", ticks.does("diagnosis"))]
    return Turn(
        cast(RealmContext, context), cast(Any, idle), cast(Any, idle), cast(Any, idle), cast(Any, idle), every, timed
    )


def after(ticks: Ticks, turn: Turn, seconds: float, *, closing: bool = False) -> list[str]:
    ticks.now_s += seconds
    ticks.done.clear()
    turn.take(closing=closing)
    return ticks.done


def test_what_is_due_by_the_clock_looks_at_it_once_a_millisecond(ticks: Ticks, turn: Turn) -> None:
    whole, between = ["lease", "log", "journal", "access", "diagnosis"], ["log", "journal", "access"]
    assert after(ticks, turn, 0.0) == whole
    assert [list(after(ticks, turn, 0.0003)) for _ in range(4)] == [between, between, between, whole]
    assert after(ticks, turn, 0.0003) == between


def test_where_turns_are_rare_it_looks_in_each_of_them(ticks: Ticks, turn: Turn) -> None:
    assert [after(ticks, turn, 0.05).count("diagnosis") for _ in range(3)] == [1, 1, 1]


def test_a_clock_that_stands_hides_nothing(ticks: Ticks, turn: Turn) -> None:
    """Time that a test moves stands between its steps."""
    assert [after(ticks, turn, 0.0).count("diagnosis") for _ in range(3)] == [1, 1, 1]


def test_a_process_that_stood_still_looks_at_its_lease_before_all_else(ticks: Ticks, turn: Turn) -> None:
    after(ticks, turn, 0.0)
    assert after(ticks, turn, 2.0)[0] == "lease"


def test_while_closing_nothing_new_begins(ticks: Ticks, turn: Turn) -> None:
    assert after(ticks, turn, 0.0, closing=True) == ["lease", "log", "journal"]
