"""Delays: how long, and a million of them in memory."""

from __future__ import annotations

import sys
from random import Random

import pytest

from native_backend.nodes.properties import Properties
from native_backend.state.delayed import SLOT_MS, DelayedEvents, delay_ms


@pytest.mark.parametrize(
    ("redelivery", "top", "expected"),
    [
        ("constant", 0, [100, 100, 100, 100]),
        ("linear", 0, [100, 200, 300, 400]),
        ("exponential", 0, [100, 200, 400, 800]),
        ("exponential", 500, [100, 200, 400, 500]),
        ("linear", 250, [100, 200, 250, 250]),
    ],
)
def test_it_grows_as_it_is_set(redelivery: str, top: int, expected: list[int]) -> None:
    properties = Properties(redelivery_delay_ms=100, redelivery_delay_max_ms=top, redelivery=redelivery)  # type: ignore[arg-type]
    assert [delay_ms(properties, attempts) for attempts in (1, 2, 3, 4)] == expected


def test_a_thousand_attempts_are_no_age_of_the_world() -> None:
    endless = Properties(redelivery_delay_ms=1000, redelivery="exponential")
    assert delay_ms(endless, 1000) == 10 * 365 * 86_400_000


def test_nothing_is_due_early_and_everything_in_order() -> None:
    delays = DelayedEvents()
    random = Random(5)
    times = {eid: random.randrange(10_000) for eid in range(0, 3000, 3)}
    for eid, at_ms in times.items():
        delays.add(eid, eid, at_ms)
    seen: set[int] = set()
    for now_ms in range(0, 10_200, 100):
        due = {eid for first, last in delays.due(now_ms) for eid in range(first, last + 1)}
        assert all(times[eid] <= now_ms for eid in due)
        seen |= due
        assert seen >= {eid for eid, at_ms in times.items() if at_ms <= now_ms - SLOT_MS}
    assert seen == times.keys()
    assert not delays and not list(delays)


def test_a_million_delayed_events_are_numbers_only() -> None:
    delays, random = DelayedEvents(), Random(7)
    for eid in range(0, 2_000_000, 2):
        delays.add(eid, eid, random.randrange(3_600_000))
    kept = sum(sys.getsizeof(ranges) for ranges in delays._slots.values()) + sys.getsizeof(delays._slots)
    assert kept < 48_000_000
    assert sum(last - first + 1 for first, last in delays.due(3_700_000)) == 1_000_000
