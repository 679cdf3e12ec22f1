"""What was stored by this process is in every number at once, in whatever ranges it was stored."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from native_backend.events.event_map import BLOCK
from native_backend.events.store_events import StoreEvents
from native_backend.nodes.node import Node

Batches = list[tuple[int, int, bool]]  # a gap in front of it, how many events, is it looked at behind it

BATCHES = st.lists(
    st.tuples(st.sampled_from([0, 0, 0, 1, 5, BLOCK]), st.sampled_from([1, 3, 170, BLOCK, 3 * BLOCK]), st.booleans()),
    max_size=12,
)


@given(BATCHES)
def test_batches_that_join_and_those_that_do_not_are_counted(batches: Batches) -> None:
    events, stored, at = StoreEvents(Node("q", "queue", "um.q", bytes(16), 1)), set[int](), 0
    events.begin(0, 0)
    for gap, count, is_looked_at in batches:
        at += gap
        eids = list(range(at, at + count))
        events.stored(eids, [b"k"] * count, now_ms=1)
        stored.update(eids)
        at += count
        if is_looked_at:
            assert events.map.count(0, at) == len(stored)
            assert events.map.first(0, at) == min(stored)
    assert events.top == max(stored, default=-1) + 1
    assert events.messages(1) == len(stored)
    assert all(events.map.count(eid, eid + 1) == 1 for eid in list(stored)[:: BLOCK // 3])
