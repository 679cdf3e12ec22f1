"""Intervals against a plain set."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from native_backend.intervals import Intervals, dense_runs

RANGES = st.tuples(st.integers(0, 40), st.integers(0, 6)).map(lambda pair: (pair[0], pair[0] + pair[1]))
CHANGES = st.lists(st.tuples(st.sampled_from(["add", "remove", "below"]), RANGES), max_size=40)


@given(CHANGES)
def test_a_set_of_ranges_is_the_set_of_its_integers(changes: list[tuple[str, tuple[int, int]]]) -> None:
    ranges, model = Intervals(), set[int]()
    for change, (first, last) in changes:
        these = set(range(first, last + 1))
        if change == "add":
            ranges.add(first, last)
            model |= these
        elif change == "remove":
            assert ranges.remove(first, last) == (these <= model)
            model -= these if these <= model else set()
        else:
            below = {value for value in model if value < first}
            assert ranges.remove_below(first) == len(below)
            model -= below
        assert {value for low, high in ranges for value in range(low, high + 1)} == model
        assert ranges.count() == len(model)
        assert all(high + 1 < low for high, low in zip(ranges.lasts, ranges.firsts[1:], strict=False))
        assert all((value in ranges) == (value in model) for value in range(50))
        holes = {value for low, high in ranges.holes(first, 45) for value in range(low, high + 1)}
        assert holes == set(range(first, 45)) - model


@given(st.sets(st.integers(0, 60)))
def test_dense_runs_are_the_ranges_of_consecutive_values(values: set[int]) -> None:
    assert dense_runs(sorted(values)) == [*Intervals((value, value) for value in sorted(values))]
