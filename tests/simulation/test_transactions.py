"""Transactions on the wire: worlds have enough of them, and the checker that is named for them sees the bugs that would
tear them."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator

import pytest

from tests.simulation.checkers import TransactionsAreWhole
from tests.simulation.observation.checker import Violation
from tests.simulation.planted.bugs import planted
from tests.simulation.planted.transactions import BUGS, WORDS
from tests.simulation.seeds import TRANSACTING
from tests.simulation.world import World

SEEDS = TRANSACTING[:40]
QUIET = 20  # of them, worlds without a planted bug


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Worlds go wrong on purpose, and say so at length."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def test_no_checker_objects_and_there_are_transactions_of_every_kind() -> None:
    worlds = [World(seed).live() for seed in SEEDS[:QUIET]]
    every = [transaction for world in worlds for transaction in world.transactions]
    ends = {(txn.asked, txn.answer) for txn in every}
    assert {("commit", "accepted"), ("rollback", "accepted"), ("commit", ""), ("", "")} <= ends
    assert ("commit", "rejected:amqp:transaction:rollback") in ends, "some are doomed"
    done = [txn for txn in every if txn.done]
    assert sum(len({post.link.node for post in txn.posted}) > 1 for txn in done) > 4, "several nodes"
    assert sum(bool(txn.posted) and bool(txn.retired) for txn in done) > 3, "messages and outcomes"
    assert len(done) > 25


@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_caught(name: str) -> None:
    for seed in SEEDS:
        try:
            with planted(BUGS[name]):
                World(seed, checkers=(TransactionsAreWhole,)).live()
        except Violation as violation:
            if re.search(WORDS[name], violation.what):
                return
        except Exception as broken:  # a bug may break the world before the checker sees it; that does not count
            logging.info("%s broke the world of seed %d: %r", name, seed, broken)
    pytest.fail(f"{BUGS[name].sentence} No one noticed in {len(SEEDS)} worlds")
