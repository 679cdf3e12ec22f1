"""How much selectors may be asked about in one turn."""

from __future__ import annotations

from typing import Any

from native_backend.events.selection import ScanBudget


class Windows:
    turn = 0


def budget(windows: Any) -> ScanBudget:
    return ScanBudget(windows, 5, 100)


def test_so_many_events_are_asked_about_in_a_turn() -> None:
    windows = Windows()
    scanning = budget(windows)
    assert [scanning.grant([b"x"] * count, len) for count in (3, 3, 1)] == [3, 2, 0]
    windows.turn += 1
    assert scanning.grant([b"x"] * 9, len) == 5


def test_and_so_many_octets_but_for_the_last_of_them() -> None:
    windows = Windows()
    scanning = budget(windows)
    assert scanning.grant([bytes(60), bytes(60), bytes(60)], len) == 2
    assert scanning.grant([b"x"], len) == 0
    windows.turn += 1
    assert scanning.grant([bytes(1_000), b"x"], len) == 1, "one that is larger than all is asked about, too"
    windows.turn += 1
    assert scanning.grant([], len) == 0
    assert scanning.grant([bytes(20)] * 9, len) == 5


def test_what_is_not_read_of_an_event_costs_nothing() -> None:
    assert budget(Windows()).grant([bytes(1_000)] * 3, lambda value: 10) == 3
