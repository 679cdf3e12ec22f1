"""Publishing inside a transaction: messages are kept for the discharge, and told in a transactional state meanwhile.

What is done is said by the tables `publish` (a transfer is here), `posted` (what the realm knows before) and, once the
transaction has ended, `published`; what they have settled before hears no more of it. Source: seeds 000 and 002, rows
P-A6, P-R3, T-P1, T-P2; 1.3-I.
May import: `gateway`, `mappings`, `native_backend`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gateway.complaint import complaint
from gateway.facts import Transfers
from gateway.transaction import Transaction
from mappings import Decision, NodeTables
from native_backend.answers import CommitAnswer, Published

if TYPE_CHECKING:
    from gateway.publishing import PublishingLink
    from native_backend.nodes import Node


@dataclass(slots=True, eq=False)
class Posted:
    """Messages of one link that met the same cells, kept for the discharge."""

    link: PublishingLink
    seqs: Sequence[int]
    presettled: int
    decision: Decision
    keys: list[bytes]
    values: list[bytes]
    tables: NodeTables  # under which they came
    node: Node

    def forget(self) -> None:
        """Its transaction can only be rolled back."""
        self.keys, self.values = [], []

    def conclude(self, answer: CommitAnswer, eids: list[int]) -> None:
        told = {"done": "stored", "indeterminate": "indeterminate"}.get(answer, "rolled-back")
        self._tell(Published(None, 0, eids, told))  # type: ignore[arg-type]

    def undo(self) -> None:
        self._tell(Published(None, 0, [-1] * len(self.seqs), "rolled-back"))

    def _tell(self, answer: Published) -> None:
        self.link.tell(self.decision, self.link.published_rule(answer, self.presettled, self.tables), self, answer)


@dataclass(slots=True, eq=False)
class Refused:
    """Messages that were refused inside a transactional state: settled with that outcome at its end."""

    link: PublishingLink
    seqs: Sequence[int]
    outcome: str
    condition: str | None
    detail: str

    def settle(self) -> None:
        self.link.link.settle(self.seqs, self.outcome, self.condition, self.detail)
        self.link.connection.touch()


@dataclass(slots=True)
class _Run:
    """Neighbours that met the same cell."""

    first_seq: int
    decision: Decision
    presettled: int
    keys: list[bytes] = field(default_factory=list)
    values: list[bytes] = field(default_factory=list)


def post(
    link: PublishingLink, keys: list[bytes | None], values: list[bytes | None], transfers: Transfers, first_seq: int
) -> None:
    """Messages with a transactional state: in order, in runs that meet the same cell."""
    transaction = link.connection.transaction(link.link, transfers.transaction)
    run: _Run | None = None
    for offset, (key, value, settled) in enumerate(zip(keys, values, transfers.presettled, strict=True)):
        word = _word(transaction, len(value or b"") if key is not None else None)
        decision = link.decide("null" if key is None else "event", word, int(settled))
        if run is None or run.decision is not decision or run.presettled != settled:
            if run is not None:
                _carry_out(link, transaction, run)
            run = _Run(first_seq + offset, decision, int(settled))
        run.keys.append(key or b"")
        run.values.append(value or b"")
    if run is not None:
        _carry_out(link, transaction, run)
    link.complete(len(keys))
    link.connection.touch()


def _word(transaction: Transaction | None, size_bytes: int | None) -> str:
    """The axis `transactional`; an event is given its room in the transaction."""
    if transaction is None:
        return "unknown"
    if transaction.state != "open":
        return "doomed"
    return "open" if size_bytes is None or transaction.room(size_bytes) else "full"


def _carry_out(link: PublishingLink, transaction: Transaction | None, run: _Run) -> None:
    seqs = range(run.first_seq, run.first_seq + len(run.keys))
    if transaction is None or run.decision.then["native"] != "publish":
        _refuse(link, transaction, run, seqs, run.decision, None)
        return
    answer = link.may_publish()
    posted = link.posted.decide(answer=answer, presettled=("no", "yes")[run.presettled])
    if answer != "ready":
        _refuse(link, transaction, run, seqs, posted, answer)
        return
    transaction.postings += link.posted_as(seqs, run.presettled, run.decision, run.keys, run.values)
    then = posted.then
    detail = complaint(link.node.name, posted, answer) if then["condition"] else ""
    if not run.presettled:
        _tell(link, transaction, seqs, then, detail)
    _consequences(link, transaction, posted, detail, run.presettled)


def _tell(link: PublishingLink, transaction: Transaction, seqs: range, then: Mapping[str, Any], detail: str) -> bool:
    """Inside its transactional state, if there is anything to tell; whether they are settled now."""
    if then["outcome"] == "none":
        return False
    return link.link.tell(seqs, transaction.id, then["outcome"], then["condition"], detail, then["settle"])


def _refuse(
    link: PublishingLink,
    transaction: Transaction | None,
    run: _Run,
    seqs: range,
    decision: Decision,
    answer: str | None,
) -> None:
    """Not kept; `decision` is the rule that says so. Its record is written now: nothing can change it."""
    then = decision.then
    detail = complaint(link.node.name, decision, answer) if then["condition"] else ""
    link.record(run.decision, None if decision is run.decision else decision, run.presettled, answer, seqs)
    if run.presettled:
        link.link.settle(seqs, "none")
    elif transaction is None:
        link.link.settle(seqs, then["outcome"], then["condition"], detail, then["settle"])
    elif not _tell(link, transaction, seqs, then, detail):
        transaction.refused.append(Refused(link, seqs, then["outcome"], then["condition"], detail))
    _consequences(link, transaction, decision, detail, run.presettled)


def _consequences(
    link: PublishingLink, transaction: Transaction | None, decision: Decision, detail: str, presettled: int
) -> None:
    if transaction is not None and decision.then["transaction"] == "doom":
        transaction.doom()
    if decision.then["class"] == "fatal":
        link.close(decision.then["condition"], detail, presettled)
