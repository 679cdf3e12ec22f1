"""Every planted bug is caught, by the checker that is named for it, within the seeds that run on every change.

Only that checker watches, so that no other can be the one that speaks. `test_worlds.py` shows that without a planted
bug none of them says anything on those seeds.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from tests.simulation.checkers import (
    CHECKERS,
    BareMessageUntouched,
    CountsAreRight,
    CreditNeverExceeded,
    EveryDeliveryHasOneOutcome,
    EvidenceHasNoHole,
    FaultsCloseTheirScope,
    JournalAgreesWithOutcomes,
    NothingAcceptedIsLost,
    NothingAcknowledgedBeforeStored,
    NothingAcknowledgedComesBack,
    NothingInFlightAtEnd,
    OrderPerPublisher,
    RuleMatchesExplain,
)
from tests.simulation.observation.checker import Checker, Violation
from tests.simulation.planted.bugs import BUGS, Bug, planted
from tests.simulation.seeds import SEEDS
from tests.simulation.world import World

CAUGHT_BY: dict[str, type[Checker]] = {
    "accept before stored": NothingAcknowledgedBeforeStored,
    "forget seq on error": EvidenceHasNoHole,
    "credit topped up twice": CreditNeverExceeded,
    "low advances over a hole": EvidenceHasNoHole,
    "wrong store id in tag": BareMessageUntouched,
    "rules recorded in each others place": RuleMatchesExplain,
    "presettled taken for unsettled": EveryDeliveryHasOneOutcome,
    "group identity mixed": EveryDeliveryHasOneOutcome,
    "flags of modified left out": EveryDeliveryHasOneOutcome,
    "conflicting outcome ignored": FaultsCloseTheirScope,
    "drain not answered": NothingInFlightAtEnd,
    "answer to the consumer forgotten": EveryDeliveryHasOneOutcome,
    "only the first of a run is settled": EveryDeliveryHasOneOutcome,
    "return not counted": CountsAreRight,
    "released counts": CountsAreRight,
    "acked range off by one": NothingAcceptedIsLost,
    "cover ignores the gap": NothingInFlightAtEnd,
    "answer before the journal": NothingAcknowledgedBeforeStored,
    "redelivery before the journal": NothingAcknowledgedComesBack,
    "lost on detach not returned": NothingAcceptedIsLost,
    "journal number reused": JournalAgreesWithOutcomes,
    "snapshot without acked": NothingAcknowledgedComesBack,
    "recovery ignores the tail": NothingAcknowledgedComesBack,
    "unknown result taken for done": JournalAgreesWithOutcomes,
    "batch stored backwards": OrderPerPublisher,
    "killed run forgotten": CountsAreRight,
    "one more than credit": EveryDeliveryHasOneOutcome,
    "header as the first time": CountsAreRight,
    "recovery forgets what was given": NothingAcceptedIsLost,
    "failure taken for stored": NothingAcknowledgedBeforeStored,
    "given not written down": NothingAcceptedIsLost,
    "last entry left out": NothingAcknowledgedBeforeStored,
}


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Worlds go wrong on purpose, and say so at length."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def _catch(bug: Bug, checker: type[Checker]) -> tuple[int, Violation] | None:
    """The first seed on which the checker speaks."""
    for seed in SEEDS:
        try:
            with planted(bug):
                World(seed, checkers=(checker,)).live()
        except Violation as violation:
            return seed, violation
        except Exception as broken:  # a bug may break the world before the checker sees it; that does not count
            logging.info("%s broke the world of seed %d: %r", bug.name, seed, broken)
    return None


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_each_planted_bug_is_caught_by_its_checker(bug: Bug) -> None:
    checker = CAUGHT_BY[bug.name]
    caught = _catch(bug, checker)
    assert caught is not None, f"{bug.sentence} {checker.__name__} did not notice in {len(SEEDS)} worlds"
    assert caught[1].checker == checker.__name__


def test_every_bug_has_a_checker_and_there_are_thirty() -> None:
    assert {bug.name for bug in BUGS} == set(CAUGHT_BY)
    assert len(BUGS) >= 30
    assert set(CAUGHT_BY.values()) <= set(CHECKERS)
