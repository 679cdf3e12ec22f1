"""Questions to Spark that are asked beside each other, or when their answer is wanted."""

from __future__ import annotations

from threading import Barrier

import pytest
from pyspark.sql import SparkSession

from reconciliation.engine.beside import beside
from tests.kit.patience import HANG_S

ENDLESS = 1 << 55


def test_questions_are_asked_at_once(session: SparkSession) -> None:
    """Each waits for the other one to be asked."""
    both = Barrier(2)

    def count(end: int) -> int:
        both.wait(HANG_S)
        return session.range(end).count()

    with beside(session, at_once=True) as ask:
        first, second = ask(lambda: count(3)), ask(lambda: count(5))
        assert (first(), second()) == (3, 5)


def test_questions_wait_until_their_answer_is_wanted(session: SparkSession) -> None:
    asked_for = list[int]()

    def note(question: int) -> int:
        asked_for.append(question)
        return len(asked_for)

    with beside(session, at_once=False) as ask:
        first, second = ask(lambda: note(1)), ask(lambda: note(2))
        assert not asked_for
        assert (second(), first(), second()) == (1, 2, 1)
    assert asked_for == [2, 1]


@pytest.mark.parametrize("at_once", [True, False])
def test_the_one_who_waits_has_the_error(session: SparkSession, at_once: bool) -> None:
    def fail() -> None:
        raise LookupError("of this question")

    with beside(session, at_once=at_once) as ask:
        answer = ask(fail)
        with pytest.raises(LookupError, match="of this question"):
            answer()


def test_what_is_still_asked_is_given_up_after_an_error(session: SparkSession) -> None:
    """It would take years."""
    with pytest.raises(LookupError), beside(session, at_once=True) as ask:
        ask(lambda: session.range(ENDLESS).selectExpr("sum(id % 7)").collect())
        while not session.sparkContext.statusTracker().getActiveJobsIds():
            pass
        raise LookupError
    assert not session.sparkContext.statusTracker().getActiveJobsIds()
