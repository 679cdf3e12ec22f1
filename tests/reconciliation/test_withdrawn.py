"""Where the journal speaks of another durable of the same name, without Spark."""

from __future__ import annotations

import pytest

from reconciliation.model.realm_nodes import Durable
from reconciliation.model.withdrawn import Ordered, Void, withdrawn

DURABLE = Durable("news", "d", 7, "um.durable.news.d", start=40, journal=100)
EVER = 1 << 62


def order(offset: int, operation: str, first: int = 0) -> Ordered:
    return Ordered(7, "d", offset, operation, first, first)


@pytest.mark.parametrize(
    ("orders", "durables", "lives", "over"),
    [
        ([], [DURABLE], [100], 100),  # the journal has its beginning no more
        ([order(20, "delete"), order(90, "delete")], [DURABLE], [21, 91, 100], 100),
        ([order(20, "delete"), order(90, "delete")], [], [21, 91], EVER),
        ([order(120, "delete")], [DURABLE], [100], 100),  # the next start erases it
        ([order(20, "seek", 5)], [], [], None),  # of a durable whose node was not read
    ],
)
def test_each_life_ends_with_its_record(
    orders: list[Ordered], durables: list[Durable], lives: list[int], over: int | None
) -> None:
    withdrawal = withdrawn(orders, durables)
    assert withdrawal.lives == [(7, "d", offset, 0) for offset in lives]
    assert withdrawal.over == ([] if over is None else [(7, "d", over, 0)])


def test_a_node_that_was_deleted_is_no_durable() -> None:
    withdrawal = withdrawn([Ordered(7, "", 20, "delete", 0, 0)], [])
    assert not withdrawal.lives
    assert not withdrawal.over


@pytest.mark.parametrize("durables", [[], [DURABLE]])
def test_what_a_seek_took_back_is_void_also_of_one_that_is_gone(durables: list[Durable]) -> None:
    """Only that of the durable which there is has moved its place."""
    withdrawal = withdrawn([order(20, "seek", 5), order(120, "seek", 60), order(130, "truncated", 70)], durables)
    taken_back: list[Void] = [(7, "d", 20, 5), (7, "d", 120, 60), (7, "d", 130, 70)]
    assert withdrawal.voids == taken_back
    assert withdrawal.seeks == ({(7, "d"): (120, 60)} if durables else {})
    assert withdrawal.ranges == ([(7, "d", 40, 59)] if durables else [])
