"""Publishing inside a transaction: messages are kept for the discharge; until then their outcome stands in a
transactional state.

The tables `publish` (a transfer has come), `posted` (what the realm knows before) and, once the transaction has ended,
`published` decide. A message that was settled before gets no more dispositions. Source: seeds 000 and 002, rows P-A6,
P-R3, T-P1, T-P2; 1.3-I.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from gateway.amqp.error_description import describe_error
from gateway.amqp.link_owner import TransferRun
from gateway.links.partitioner import Part
from gateway.links.publishing import Post, PublishingLink
from gateway.transactions.open_transactions import OpenTransactions, TransactingPeer
from gateway.transactions.transaction import Transaction
from mappings import Decision, NodeTables
from native_backend.nodes.answers import Published
from native_backend.nodes.words import CommitAnswer


@dataclass(slots=True, eq=False)
class Posted:
    """Messages of one link that met the same cells, kept for the discharge."""

    link: PublishingLink
    part: Part
    presettled: int
    decision: Decision
    tables: NodeTables  # under which they came

    def forget(self) -> None:
        """Its transaction can only be rolled back."""
        self.part.keys, self.part.values = [], []

    def conclude(self, answer: CommitAnswer, eids: list[int]) -> None:
        publish_answer = {"done": "stored", "indeterminate": "indeterminate"}.get(answer, "rolled-back")
        self._tell(Published(None, 0, eids, publish_answer))  # type: ignore[arg-type]

    def undo(self) -> None:
        self._tell(Published(None, 0, [-1] * len(self.part.seqs), "rolled-back"))

    def _tell(self, answer: Published) -> None:
        rule = self.link.published_rule(answer, self.presettled, self.tables)
        self.link.tell(self.part, self.presettled, self.decision, rule, answer)


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


def poster(connection: TransactingPeer) -> Post:
    """Keeps messages for the discharge of a transaction of that connection."""
    return partial(post, connection.transactions)


def post(
    transactions: OpenTransactions,
    link: PublishingLink,
    keys: list[bytes | None],
    values: list[bytes | None],
    transfers: TransferRun,
    first_seq: int,
) -> None:
    """Messages with a transactional state: in order, in runs that meet the same cell."""
    transaction = transactions.find(link.link.session, transfers.transaction)
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
    posted: Decision = link.posted[answer][("no", "yes")[run.presettled]]
    if answer != "ready":
        _refuse(link, transaction, run, seqs, posted, answer)
        return
    parts = link.partitioner.parts(seqs, run.keys, run.values)
    transaction.touches(link.node.name)
    transaction.postings += [Posted(link, part, run.presettled, run.decision, link.tables) for part in parts]
    then = posted.then
    detail = describe_error(link.node.name, posted, answer) if then["condition"] else ""
    ending = link.ending(then, detail, seqs[0])
    if not run.presettled:
        _tell(link, transaction, seqs, then, detail)
    _conclude(transaction, then, ending)


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
    detail = describe_error(link.node.name, decision, answer) if then["condition"] else ""
    ending = link.ending(then, detail, seqs[0])
    link.record(run.decision, None if decision is run.decision else decision, run.presettled, answer, seqs)
    if run.presettled:
        link.link.settle(seqs, "none")
    elif transaction is None:
        link.link.settle(seqs, then["outcome"], then["condition"], detail, then["settle"])
    elif not _tell(link, transaction, seqs, then, detail):
        transaction.refused.append(Refused(link, seqs, then["outcome"], then["condition"], detail))
        transaction.refusals += len(seqs)
    _conclude(transaction, then, ending)


def _conclude(transaction: Transaction | None, then: Mapping[str, Any], ending: Callable[[], None] | None) -> None:
    if transaction is not None and then["transaction"] == "doom":
        transaction.mark_rollback_only()
    if ending is not None:
        ending()
