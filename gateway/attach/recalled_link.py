"""Links that end their durable when their peer closes them for good: the answering DETACH waits until that is done.

One was attached without a source, to find its durable again: JMS unsubscribes so. Nothing comes on it; detached it
changes nothing. The other one has consumed from its durable, where the table `attach` says `on_close: end`.
Source: semantics.md 3.3; AMQP 1.0 part 2, 2.6.3; ADR 0044.
"""

from __future__ import annotations

from gateway.amqp.error_description import describe_error
from gateway.amqp.link_ends import Link, Outgoing
from gateway.amqp.link_owner import LinkOwner
from gateway.attach.leaving import LeavingLink
from gateway.links.consuming import ConsumingLink
from gateway.links.peer import Peer
from gateway.transactions.open_transactions import TransactingPeer
from native_backend.nodes.answers import Commanded
from native_backend.nodes.durable import Durable

_ANSWERS = {"in-use": "in-use", "access-denied": "access-denied", "indeterminate": "indeterminate"}


class RecalledLink(LinkOwner):
    """The session's side of such a link. Several durables only where an earlier release let one name be on several
    nodes."""

    def __init__(self, connection: Peer, link: Outgoing, durables: list[Durable]) -> None:
        self.connection = connection
        self.link = link
        self._durables = durables
        self._waiting = 0
        self._failed: Commanded | None = None

    def unsubscribe(self) -> None:
        """The peer has closed the link."""
        if self._waiting:
            return
        self._waiting = len(self._durables)
        for durable in self._durables:
            self.connection.gateway.realm.unsubscribe(durable, self)

    def answered(self, answer: Commanded) -> None:
        self._waiting -= 1
        if answer.answer not in ("done", "not-found"):  # gone is gone
            self._failed = answer
        if self._waiting or not self.link.alive:
            return
        condition, detail = None, ""
        if self._failed is not None:
            condition, detail = _refusal(self.connection, self._durables[0], self._failed)
        self.connection.finish(self.link, condition, detail)


class EndingLink(LeavingLink):
    """A link to a durable that its peer has closed. A durable that other links share stays."""

    def __init__(self, connection: TransactingPeer, link: Link, durable: Durable) -> None:
        super().__init__(connection, link, True)
        self._durable = durable

    def answered(self, answer: Commanded) -> None:
        if answer.answer in ("done", "not-found", "in-use") or not self._link.alive:
            self.answer()
        else:
            self._link.close(*_refusal(self.connection, self._durable, answer))
            self.connection.touch()


def given_up(connection: Peer, link: Link) -> Durable | None:
    """The durable that ends when its peer closes that link for good."""
    owner = link.owner
    if not isinstance(owner, ConsumingLink) or not owner.ends_on_close:
        return None
    name, store = owner.subscription.durable, owner.subscription.node.part(0).store
    return next(
        (durable for durable in connection.gateway.realm.durables() if (durable.name, durable.store) == (name, store)),
        None,
    )


def _refusal(connection: Peer, durable: Durable, answer: Commanded) -> tuple[str | None, str]:
    """Condition and description of the DETACH."""
    answer_word = _ANSWERS.get(answer.answer, "unexpected")
    table = connection.gateway.tables.for_node(durable.node)["attached"]
    decision = table.decide(direction="subscribe", answer=answer_word, moment="attach")
    return decision.then["condition"], describe_error(durable.node, decision, answer_word, answer.detail)
