"""Which EIDs are events, counted as a plain set counts them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from native_backend.events.event_map import BLOCK, EventMap

_EDGES = st.sampled_from([0, 1, 5, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK - 1, 2 * BLOCK, 5 * BLOCK, 5 * BLOCK + 7])
RANGES = st.lists(st.tuples(_EDGES, _EDGES).map(sorted), max_size=8)


@given(RANGES, RANGES, _EDGES)
def test_counts_are_those_of_a_set(added: list[list[int]], queries: list[list[int]], bound: int) -> None:
    events, truth = EventMap(), set[int]()
    for first, last in added:
        events.add(first, last)
        truth.update(range(first, last + 1))
    for first, end in queries:
        there = [eid for eid in range(first, end) if eid in truth]
        assert events.count(first, end) == len(there)
        assert events.first(first, end) == min(there, default=None)
    events.remove_below(bound)
    assert events.count(bound, 9 * BLOCK) == sum(eid >= bound for eid in truth)
    for block in range(7):  # what is full takes no more
        events.add(block * BLOCK, (block + 1) * BLOCK - 1)
    assert events.count(0, 9 * BLOCK) == 7 * BLOCK


def test_events_without_gaps_take_no_room() -> None:
    events = EventMap()
    for first in range(0, 100 * BLOCK, 100):
        events.add(first, first + 99)
    assert events.count(0, 200 * BLOCK) == 100 * BLOCK
    assert len(events._masks) <= 1
    assert len(events._whole) == 1
