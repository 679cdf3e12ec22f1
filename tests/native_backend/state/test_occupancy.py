"""Counting in lots, against a plain set: whatever is stored, ends and goes, in any order."""

from __future__ import annotations

from random import Random

import pytest

from native_backend.state.ack_state import AckState
from native_backend.state.occupancy import Occupancy


@pytest.mark.parametrize("seed", range(20))
def test_it_counts_like_a_set(seed: int) -> None:
    random = Random(seed)
    occupancy, state = Occupancy(0), AckState(0)
    living: set[int] = set()
    end = 0
    for _ in range(300):
        if random.random() < 0.5:
            eids = [*range(end, end + random.randrange(1, 20))]
            if random.random() < 0.2:
                del eids[len(eids) // 2 : -1]  # a hole
            occupancy.store(eids, 10 * len(eids), eids[-1] + 1)
            living.update(eids)
            end = eids[-1] + random.choice([1, 1, 2])
        elif living:
            eid = random.choice(sorted(living))
            run = [(eid, eid, 0, eid)]
            occupancy.end(run)
            state.apply("acknowledge", False, run)
            living.discard(eid)
            occupancy.settle(state.low)
        if random.random() < 0.1 and living:
            most = max(1, len(living) - random.randrange(1, 8))
            bound = occupancy.surplus(most, 0, state.low, state.acked)
            if bound:
                occupancy.drop(bound, state.low, state.acked)
                living = {eid for eid in living if eid >= bound}
                state.evict(bound)
                assert len(living) <= most
        assert occupancy.count == len(living), "what lives is what is counted"


def test_it_keeps_to_the_event_where_events_are_dense() -> None:
    occupancy, state = Occupancy(0), AckState(0)
    occupancy.store([*range(100)], 1000, 100)
    state.apply("acknowledge", False, [(2, 4, 1, 2)])
    occupancy.end([(2, 4, 1, 2)])
    assert occupancy.surplus(97, 0, state.low, state.acked) == 0
    assert occupancy.surplus(94, 0, state.low, state.acked) == 6
    occupancy.drop(6, state.low, state.acked)
    assert (occupancy.count, occupancy.floor, occupancy.size_bytes) == (94, 6, 940)


def test_a_long_backlog_is_few_lots() -> None:
    occupancy = Occupancy(0)
    for first in range(0, 1_000_000, 10):
        occupancy.store([*range(first, first + 10)], 100, first + 10)
    assert len(occupancy._lots) <= 1_000
    assert occupancy.count == 1_000_000
