"""Units of several nodes on disks that go wrong: never torn, never doubled, nothing gone before its end; and the bugs
that would make it so are seen."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from tests.simulation.planted.bugs import violations
from tests.simulation.planted.units import BUGS, WORDS
from tests.simulation.trade import Trade

SEEDS = range(1, 25)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Disks go wrong on purpose, and realms say so at length."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def test_units_are_whole() -> None:
    trades = [Trade(seed) for seed in SEEDS]
    assert {seed: faults for seed, trade in zip(SEEDS, trades, strict=True) if (faults := trade.live())} == {}
    answers = {unit.answer for trade in trades for unit in trade.units}
    assert {"done", "let go", ""} <= answers, "a killed one has no answer"
    assert sum(unit.answer == "done" for trade in trades for unit in trade.units) > 200
    assert {(trade.shape.partitions, trade.shape.priority_levels) for trade in trades} == {(1, 0), (3, 0), (1, 3)}
    assert sum(trade.trimmed > 0 for trade in trades) > len(SEEDS) // 2, "the journal is trimmed meanwhile"
    assert sum(trade.kills for trade in trades) > 2 * len(SEEDS)


@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_seen(name: str) -> None:
    seen = violations(BUGS[name], WORDS[name], SEEDS, lambda seed: Trade(seed).live())
    assert any(WORDS[name] in words for words in seen), f"{BUGS[name].sentence} No one noticed; seen was {seen[:3]}"
