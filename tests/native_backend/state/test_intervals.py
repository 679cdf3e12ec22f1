"""Intervals against a plain set, in blocks so small that every change meets their edges; and at scale."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from native_backend.state import intervals
from native_backend.state.intervals import Intervals, dense_runs

RANGES = st.tuples(st.integers(0, 70), st.sampled_from([0, 0, 0, 1, 2, 6, 25])).map(
    lambda pair: (pair[0], pair[0] + pair[1])
)
CHANGES = st.lists(
    st.tuples(st.sampled_from(["add", "add", "add", "remove", "discard", "below", "from", "absorb"]), RANGES),
    max_size=120,
)


def low_of(model: set[int], low: int) -> int:
    while low in model:
        low += 1
    return low


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300)
@given(changes=CHANGES, block=st.sampled_from([2, 3, 512]), begun=st.sets(st.integers(0, 80)))
def test_a_set_of_ranges_is_the_set_of_its_integers(
    monkeypatch: pytest.MonkeyPatch, changes: list[tuple[str, tuple[int, int]]], block: int, begun: set[int]
) -> None:
    monkeypatch.setattr(intervals, "BLOCK", block)
    model = set(begun)
    ranges = Intervals((value, value) for value in sorted(begun))
    for change, (first, last) in changes:
        these = set(range(first, last + 1))
        if change == "add":
            ranges.add(first, last)
            model |= these
        elif change == "remove":
            assert ranges.remove(first, last) == (these <= model)
            model -= these if these <= model else set()
        elif change == "discard":
            ranges.discard(first, last)
            model -= these
        elif change == "absorb":
            low = low_of(model, first)
            assert ranges.absorb(first) == low
            model = {value for value in model if value >= low}
        elif change == "from":
            ranges.remove_from(first)
            model = {value for value in model if value < first}
        else:
            below = {value for value in model if value < first}
            assert ranges.remove_below(first) == len(below)
            model -= below
        is_the_same(ranges, model)
        holds_what_it_says(ranges, model, first, last)


def is_the_same(ranges: Intervals, model: set[int]) -> None:
    pairs = [*ranges]
    assert {value for low, high in pairs for value in range(low, high + 1)} == model
    assert all(high + 1 < low for (_, high), (low, _) in pairwise(pairs))
    assert (ranges.count(), len(ranges), bool(ranges)) == (len(model), len(pairs), bool(model))
    blocks = ranges._firsts
    assert [len(lasts) for lasts in ranges._lasts] == [len(firsts) for firsts in blocks]
    assert all(0 < len(firsts) <= intervals.BLOCK for firsts in blocks)
    assert ranges._tops == [lasts[-1] for lasts in ranges._lasts]


def holds_what_it_says(ranges: Intervals, model: set[int], first: int, last: int) -> None:
    assert all((value in ranges) == (value in model) for value in range(100))
    holes = {value for low, high in ranges.holes(first, 95) for value in range(low, high + 1)}
    assert holes == set(range(first, 95)) - model
    above = sorted(value for value in model if value >= first)
    interval = ranges.at_or_above(first)
    assert (interval is None) == (not above)
    assert interval is None or interval == (above[0], low_of(model, above[0]) - 1)
    free = [value for value in range(first, last + 1) if value not in model]
    hole = ranges.first_hole(first, last)
    assert hole == (dense_runs(free)[0] if free else None)


@given(st.sets(st.integers(0, 60)))
def test_dense_runs_are_the_ranges_of_consecutive_values(values: set[int]) -> None:
    assert dense_runs(sorted(values)) == [*Intervals((value, value) for value in sorted(values))]


def test_out_of_order_it_grows_in_blocks_and_ends_empty() -> None:
    order = [*range(40_000)]
    Random(7).shuffle(order)
    ranges, low, widest = Intervals(), 0, 0
    for value in order:
        ranges.add(value, value)
        low = ranges.absorb(low)
        widest = max(widest, len(ranges._firsts))
    assert (low, len(ranges)) == (40_000, 0)
    assert 8 <= widest <= 40  # 10,000 ranges at the most: halved blocks of 512, none of them nearly empty
