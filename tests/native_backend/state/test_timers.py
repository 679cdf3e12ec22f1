"""When a part of a realm is called by the clock, and when it is not."""

from __future__ import annotations

from typing import Any, cast

import pytest

from native_backend.state.mistakes import Mistakes
from native_backend.state.timers import Timer, Timers
from tests.kit.realm.stopped_clock import StoppedClock


class Parts:
    """Timers of one realm, and what was called."""

    def __init__(self) -> None:
        self.clock = StoppedClock()
        self.mistakes = Mistakes(cast(Any, self.clock))
        self.timers = Timers(cast(Any, self.clock), self.mistakes)
        self.called: list[str] = []

    def part(self, name: str, **kind: bool) -> Timer:
        return self.timers.timer(name, lambda: self.called.append(name), **kind)

    def at(self, now_s: float) -> list[str]:
        """What a turn at that time calls."""
        self.clock.now_s = now_s
        self.called.clear()
        self.timers.run()
        return [*self.called]


@pytest.fixture
def parts() -> Parts:
    return Parts()


def test_a_part_is_called_once_when_it_is_due(parts: Parts) -> None:
    parts.part("late").at(7.0)
    parts.part("early").at(5.0)
    parts.part("never")
    assert [parts.at(now_s) for now_s in (4.9, 5.0, 5.1, 9.0, 99.0)] == [[], ["early"], [], ["late"], []]


def test_the_soonest_time_holds_unless_another_one_is_named_instead(parts: Parts) -> None:
    timer = parts.part("part")
    timer.by(7.0)
    timer.by(5.0)
    timer.by(6.0)
    assert [parts.at(now_s) for now_s in (4.9, 5.0, 6.0, 7.0)] == [[], ["part"], [], []]
    timer.at(8.0)
    timer.at(10.0)
    assert [parts.at(now_s) for now_s in (8.0, 9.9, 10.0, 11.0)] == [[], [], ["part"], []]
    timer.after(2.0)
    timer.at(12.0)
    timer.at(13.0)
    assert [parts.at(now_s) for now_s in (12.9, 13.0, 14.0)] == [[], ["part"], []]
    timer.at(15.0)
    timer.stop()
    assert parts.at(16.0) == []


def test_a_part_that_wants_to_be_called_soon_does_not_hold_up_the_turn(parts: Parts) -> None:
    def again() -> None:
        parts.called.append("part")
        timer.soon()

    timer = parts.timers.timer("part", again)
    timer.soon()
    assert [parts.at(now_s) for now_s in (1.0, 1.0)] == [["part"], ["part"]]


def test_a_part_stops_and_delays_others_that_are_due_in_the_same_turn(parts: Parts) -> None:
    def stops() -> None:
        stopped.stop()
        delayed.at(3.0)

    parts.timers.timer("first", stops).at(1.0)
    stopped, delayed = parts.part("stopped"), parts.part("delayed")
    stopped.at(2.0)
    delayed.at(2.0)
    assert [parts.at(now_s) for now_s in (2.0, 2.9, 3.0)] == [[], [], ["delayed"]]


def test_a_part_that_raises_holds_up_no_other_and_is_called_again(parts: Parts) -> None:
    def raises() -> None:
        parts.called.append("raises")
        raise ValueError("planted")

    parts.timers.timer("raises", raises, is_needed=True).at(1.0)
    parts.part("other").at(1.0)
    assert [parts.at(now_s) for now_s in (1.0, 1.9, 2.0)] == [["raises", "other"], [], ["raises"]]
    assert [trouble.about for trouble in parts.mistakes.troubles.present()] == ["raises"]


def test_what_was_named_and_does_not_hold_is_forgotten(parts: Parts) -> None:
    timers = [parts.part(str(number)) for number in range(50)]
    for round_ in range(1000):
        for number, timer in enumerate(timers):
            timer.at(1e6 + number + round_ / 1000)
    for timer in timers[:10]:
        timer.stop()
    assert parts.timers.entries < 300
    assert parts.at(2e6) == [str(number) for number in range(10, 50)]
    assert parts.timers.entries == 0


def test_while_closing_only_what_ends_what_was_begun_is_called(parts: Parts) -> None:
    begins, ends = parts.part("begins"), parts.part("ends", ends=True)
    parts.timers.close()
    begins.at(1.0)
    ends.at(1.0)
    assert parts.at(2.0) == ["ends"]
