"""The checker sees what may go wrong with nodes of several stores: partitions with groups, and levels of priority."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.torture.checks.good_history import GoodHistory
from tests.torture.checks.planted_in_stores import (
    IN_PLACE,
    PLANTED,
    S,
    divided,
    spread,
)
from tests.torture.checks.realm_reader import Store


@pytest.mark.parametrize("sent", IN_PLACE, ids=["partitions", "levels"])
def test_a_good_history_of_several_stores_breaks_no_guarantee(
    history: GoodHistory, sent: list[tuple[str, int, Store]]
) -> None:
    """EIDs of one store are not those of another."""
    spread(history, *sent)
    assert history.found() == set()


def test_a_group_may_go_to_another_when_its_consumer_has_gone(history: GoodHistory) -> None:
    divided(history)
    at = history.find("received", 12, 81, 1)
    history.rows.insert(at, ("end", history.rows[at][1], 11, "cut"))
    assert history.found() == set()


def test_a_group_that_waited_for_another_link_may_come_late(history: GoodHistory) -> None:
    """Behind others of its store, not out of order within itself."""
    spread(history, ("a", 4, S[0]), ("", 4, S[0]))
    first, second = history.find("received", 11, 81, 0), history.find("received", 11, 81, 1)
    history.rows[first], history.rows[second] = history.rows[second], history.rows[first]
    history.rows = [row for row in history.rows if row[0] not in ("settle", "settled") or row[3] != 81]
    for eid in (0, 1):
        history.note("settle", 11, 81, eid, "accepted", 0)
    assert history.found() == set()


@pytest.mark.parametrize(("guarantee", "plant"), PLANTED, ids=lambda case: getattr(case, "__name__", "").strip("_"))
def test_a_planted_violation_is_seen(
    history: GoodHistory, guarantee: str, plant: Callable[[GoodHistory], None]
) -> None:
    plant(history)
    assert guarantee in history.found()
