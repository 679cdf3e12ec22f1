"""Which blocks of EIDs are settled by their counts, and which are folded event by event."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from reconciliation.model import schemas
from reconciliation.transforms import durables
from reconciliation.transforms.frames import local_table

STORED = "store bigint, run string, eid bigint"
ENDED = "store bigint, durable string, run string, eid bigint, operation string, offset bigint, cover bigint"
FIRST = [(1, "first", eid) for eid in range(10)]
SECOND = [(1, "second", eid) for eid in range(10, 20)]
BEGINNINGS = [("first", 0), ("second", 50)]


def ended(run: str, first: int, last: int, offset: int) -> list[tuple[str | int | None, ...]]:
    return [(1, "queue", run, eid, "acknowledge", offset, None) for eid in range(first, last + 1)]


@pytest.mark.parametrize(
    ("ends", "kind"),
    [
        ([*ended("first", 0, 9, 5), *ended("second", 10, 19, 60)], "ended"),
        ([*ended("first", 0, 5, 5), *ended("second", 6, 19, 60)], "ended"),  # the second goes on with what is left
        ([*ended("first", 0, 5, 5), *ended("second", 6, 18, 60)], "suspect"),
        ([*ended("first", 0, 10, 5), *ended("second", 11, 19, 60)], "suspect"),  # 10 was not there when it ended
        ([*ended("first", 0, 9, 60), *ended("second", 10, 19, 40)], "suspect"),  # before its run had begun
        (ended("unknown", 0, 19, 49), "suspect"),
        ([], "untouched"),
    ],
)
def test_a_block_that_two_runs_stored(
    session: SparkSession, ends: list[tuple[str | int | None, ...]], kind: str
) -> None:
    """It is folded only where a run ended something at or above the first event of a run that had not begun."""
    events = local_table(session, [*FIRST, *SECOND], STORED)
    of_queue = local_table(session, [(1, "orders", "queue", 0, 0, 0, 0, None, None)], schemas.DURABLES)
    states = durables.durable_blocks(
        durables.event_blocks(durables.event_parts(events), local_table(session, BEGINNINGS, schemas.BEGINNINGS)),
        durables.end_blocks(local_table(session, ends, ENDED)),
        None,
        of_queue,
    )
    [row] = states.select("kind", "events", "ends").collect()
    assert (row["kind"], row["events"], row["ends"]) == (kind, 20, len(ends))
