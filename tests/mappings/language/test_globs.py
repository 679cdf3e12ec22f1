"""Patterns of names: what matches, and whether a name matches some and not others, against all short names."""

from __future__ import annotations

import re
import time
from fnmatch import fnmatchcase
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mappings.language.globs import Budget, compiled, example

PATTERN = st.text("ab*", min_size=1, max_size=5)
NAMES = ["".join(letters) for size in range(1, 8) for letters in product("abx", repeat=size)]  # x: named by no pattern


def is_hit(name: str, include: list[str], exclude: list[str]) -> bool:
    return all(fnmatchcase(name, glob) for glob in include) and not any(fnmatchcase(name, glob) for glob in exclude)


@given(st.lists(PATTERN, min_size=1, max_size=2), st.lists(PATTERN, max_size=2))
def test_an_example_is_there_exactly_when_a_name_is(include: list[str], exclude: list[str]) -> None:
    sample = example(include, exclude, Budget(100_000))
    first = next((name for name in NAMES if is_hit(name, include, exclude)), None)
    if sample is None:
        assert first is None, "a name was overlooked"
    else:
        assert is_hit(sample, include, exclude)
        assert first is None or len(sample) == len(first), "a shorter one is there"


@given(st.lists(PATTERN, max_size=3), st.text("abx\n", max_size=7))
def test_a_name_matches_as_a_shell_has_it(patterns: list[str], name: str) -> None:
    assert bool(compiled(patterns).fullmatch(name)) == any(fnmatchcase(name, pattern) for pattern in patterns)


def test_what_is_no_wildcard_is_itself() -> None:
    assert compiled(["a.b[c]?+("]).fullmatch("a.b[c]?+(")
    assert not compiled(["a.b"]).fullmatch("axb")


def test_no_name_takes_long() -> None:
    """A peer chooses the name: a backtracking match would take longer than the universe is old."""
    began = time.process_time()  # of ours: how busy the machine is does not matter
    assert not compiled(["*a*a*a*a*a*a*a*a*b"]).fullmatch("a" * 1_024)
    assert time.process_time() - began < 10


def test_characters_that_patterns_name_are_not_taken_for_strange_ones() -> None:
    everything = [f"{letter}*" for letter in "xyzabcdefghijklmnopqrstuvw0123456789"]
    name = example(["*"], everything, Budget(100_000))
    assert name and not re.match("[a-z0-9]", name)


def test_a_search_ends_when_its_steps_are_spent() -> None:
    with pytest.raises(Budget.Spent):
        example(["*a*b*", "*b*c*"], ["*a*", "*c*"], Budget(10))
