"""The checkers: what must hold in every world. One class a file."""

from __future__ import annotations

from tests.simulation.checkers.bare_message_untouched import BareMessageUntouched
from tests.simulation.checkers.counts_are_right import CountsAreRight
from tests.simulation.checkers.credit_never_exceeded import CreditNeverExceeded
from tests.simulation.checkers.every_delivery_has_one_outcome import EveryDeliveryHasOneOutcome
from tests.simulation.checkers.evidence_has_no_hole import EvidenceHasNoHole
from tests.simulation.checkers.faults_close_their_scope import FaultsCloseTheirScope
from tests.simulation.checkers.journal_agrees_with_outcomes import JournalAgreesWithOutcomes
from tests.simulation.checkers.never_more_than_credit_sent import NeverMoreThanCreditSent
from tests.simulation.checkers.nothing_accepted_is_lost import NothingAcceptedIsLost
from tests.simulation.checkers.nothing_acknowledged_before_stored import NothingAcknowledgedBeforeStored
from tests.simulation.checkers.nothing_acknowledged_comes_back import NothingAcknowledgedComesBack
from tests.simulation.checkers.nothing_in_flight_at_end import NothingInFlightAtEnd
from tests.simulation.checkers.order_per_publisher import OrderPerPublisher
from tests.simulation.checkers.rule_matches_explain import RuleMatchesExplain
from tests.simulation.checkers.transactions_are_whole import TransactionsAreWhole
from tests.simulation.observation.checker import Checker

CHECKERS: tuple[type[Checker], ...] = (
    NothingAcknowledgedBeforeStored,
    NothingAcknowledgedComesBack,
    CreditNeverExceeded,
    NeverMoreThanCreditSent,
    OrderPerPublisher,
    BareMessageUntouched,
    CountsAreRight,
    FaultsCloseTheirScope,
    EveryDeliveryHasOneOutcome,
    NothingAcceptedIsLost,
    EvidenceHasNoHole,
    JournalAgreesWithOutcomes,
    RuleMatchesExplain,
    NothingInFlightAtEnd,
    TransactionsAreWhole,
)

__all__ = [
    "CHECKERS",
    "BareMessageUntouched",
    "CountsAreRight",
    "CreditNeverExceeded",
    "EveryDeliveryHasOneOutcome",
    "EvidenceHasNoHole",
    "FaultsCloseTheirScope",
    "JournalAgreesWithOutcomes",
    "NeverMoreThanCreditSent",
    "NothingAcceptedIsLost",
    "NothingAcknowledgedBeforeStored",
    "NothingAcknowledgedComesBack",
    "NothingInFlightAtEnd",
    "OrderPerPublisher",
    "RuleMatchesExplain",
    "TransactionsAreWhole",
]
