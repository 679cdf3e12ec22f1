"""What `bench.facts.before` says of measured pairs, and that a change which costs too much is seen."""

from __future__ import annotations

import pytest

from bench.facts.before import figures, line_of
from bench.facts.turns import ROWS

COUPLES = 5


def couples(before_us: float, after_us: float) -> list[dict[str, list[tuple[float, float]]]]:
    """Each with a pair that something has disturbed."""
    pairs = [(before_us, after_us), (9 * before_us, after_us), (before_us, after_us)]
    return [dict.fromkeys(ROWS, pairs) for _ in range(COUPLES)]


@pytest.mark.parametrize(
    ("before_us", "after_us", "verdict"),
    [(10.0, 10.0, "met"), (9.71, 10.0, "met"), (9.69, 10.0, "NOT met"), (10.0, 8.0, "met"), (8.0, 10.0, "NOT met")],
)
def test_what_costs_more_than_it_may_is_not_met(before_us: float, after_us: float, verdict: str) -> None:
    rows = figures(couples(before_us, after_us))
    for row in ROWS:
        assert rows[row]["ratio"] == pytest.approx(before_us / after_us, abs=1e-4)
        assert (rows[row]["before_us"], rows[row]["after_us"]) == (before_us, after_us)
        assert line_of("kafka", 100, row, rows[row]).endswith(f"required 0.97: {verdict}")


def test_too_few_couples_have_no_interval() -> None:
    with pytest.raises(ValueError, match="4 values have no interval"):
        figures(couples(10.0, 10.0)[:4])
