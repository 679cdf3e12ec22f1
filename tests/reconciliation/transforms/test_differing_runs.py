"""Sums of a run, added up over its blocks, differ wherever those of one block do."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from reconciliation.transforms.added import SOME, differing_runs
from reconciliation.transforms.frames import local_table

SIDES = "run string, block bigint, store bigint, durable string, word string, count bigint, `xor` bigint, claim int"
Side = tuple[str, int | None, int, str | None, str, int, int, int]
CLAIM, FACT = 1, 0


def side(block: int | None, count: int, xor: int, claim: int, *, run: str = "a", word: str = "event") -> Side:
    return run, block, 1, None, word, count, xor, claim


BOTH = [side(0, 3, 77, CLAIM), side(0, 3, 77, FACT), side(1, 2, 5, CLAIM), side(1, 2, 5, FACT)]


@pytest.mark.parametrize(
    ("rows", "runs"),
    [
        (BOTH, []),
        ([side(0, 3, 77, CLAIM), side(0, 1, 74, FACT), side(0, 2, 7, FACT)], []),  # two links have it
        ([*BOTH, side(2, 1, 9, CLAIM)], ["a"]),
        ([*BOTH, side(2, 1, 9, FACT, word="journal discard")], ["a"]),
        ([*BOTH, side(2, 1, 9, CLAIM), side(2, 1, 8, FACT)], ["a"]),  # another one
        ([*BOTH, side(2, 2, 0, CLAIM)], ["a"]),  # one, twice: the hashes say nothing
        ([*BOTH, side(2, 2, 0, CLAIM), side(3, 2, 0, FACT)], ["a"]),  # nor do the counts of both blocks
        ([*BOTH, side(None, 1, 9, CLAIM)], ["a"]),
        ([*BOTH, side(2, 1, 9, CLAIM, run="b"), side(2, 1, 9, FACT, run="c")], ["b", "c"]),
    ],
)
def test_a_run_differs_where_a_block_does(session: SparkSession, rows: list[Side], runs: list[str]) -> None:
    sides = local_table(session, rows, SIDES).selectExpr("*", "claim = 1 AS is_claim")
    differing = differing_runs(sides).distinct().collect()
    assert sorted(row["run"] for row in differing) == runs
    assert {row["block"] for row in differing} <= {SOME}
