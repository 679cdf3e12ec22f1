"""A link that was attached without a source, to find its durable again: JMS unsubscribes so. Nothing comes on it.

Closed for good it deletes the durable, and the answering DETACH waits until that is done; detached it changes nothing.
Source: semantics.md 3.3. May import: `gateway`, `native_backend`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gateway.complaint import complaint
from gateway.engine_links import Outgoing
from native_backend.answers import Commanded
from native_backend.durables import Durable

if TYPE_CHECKING:
    from gateway.connection import Connection

_ANSWERS = {"in-use": "in-use", "access-denied": "access-denied", "indeterminate": "indeterminate"}


class RecalledLink:
    """The session's side of such a link. Several durables only where an earlier release let one name be on several
    nodes."""

    def __init__(self, connection: Connection, link: Outgoing, durables: list[Durable]) -> None:
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
        failed, condition, detail = self._failed, None, ""
        if failed is not None:
            said = _ANSWERS.get(failed.answer, "unexpected")
            table = self.connection.gateway.tables.for_node(self._durables[0].node)["attached"]
            decision = table.decide(direction="subscribe", answer=said, moment="attach")
            condition = decision.then["condition"]
            detail = complaint(self._durables[0].node, decision, said, failed.detail)
        self.connection.finish(self.link, condition, detail)

    def on_dispositions(self, _: Any) -> None:
        """Nothing was given that could be settled."""

    def ended(self, _: str) -> None:
        """What was asked of the realm goes on."""
