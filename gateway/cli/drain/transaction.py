"""Local transactions of an AMQP 1.0 client: posts and one acknowledgement become one unit at the peer, or nothing.

Source: AMQP 1.0 part 4. Seconds. Errors: `ClientProblem`; `Rejected` where the peer refuses what was asked for.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any, Final

from proton import Delivery, Described, Link, Message, Terminus, symbol, ulong

from gateway.cli.client.client_problem import ClientProblem
from gateway.cli.client.connection import Attached, Peer

_TRANSACTIONAL: Final = 0x34
_ACCEPTED: Final = ulong(0x24)
_REJECTED: Final = 0x25


class Rejected(Exception):
    """A message, or a whole transaction, that the peer does not take. Nothing of the transaction is stored. `index`: of
    the message, -1 where the peer does not say which."""

    def __init__(self, index: int, condition: str, text: str) -> None:
        super().__init__(": ".join(part for part in (condition, text) if part) or "rejected without a reason")
        self.index, self.condition = index, condition


class Transactions:
    """The control link of one connection; one transaction at a time."""

    def __init__(self, peer: Peer, timeout_s: float) -> None:
        self._peer, self._timeout_s = peer, timeout_s
        self._link: Any = peer.session.sender(f"transactions-{uuid.uuid4()}")
        self._link.target.type = Terminus.COORDINATOR
        self._link.target.capabilities.put_object(symbol("amqp:local-transactions"))
        peer.attach(self._link, "the transaction coordinator")

    def run(self, posts: Sequence[tuple[Attached, bytes]], retired: Delivery | None) -> None:
        """All of it, or nothing: raises Rejected. After a ClientProblem it is not known which."""
        declared = self._ask("amqp:declare:list", [None])
        transaction = declared.remote.data[0] if declared.remote.data else None
        if transaction is None:
            raise self._refused(declared, "no transaction is declared")
        sent = [_post(to.link, octets, transaction) for to, octets in posts]
        if retired is not None:
            accepted: list[Any] = [transaction, Described(_ACCEPTED, [])]
            retired.local.data = accepted
            retired.update(_TRANSACTIONAL)
        self._await_outcomes(posts, sent)
        refused = next(((n, why) for n, delivery in enumerate(sent) if (why := _rejection(delivery)) is not None), None)
        discharged = self._ask("amqp:discharge:list", [transaction, refused is not None])
        for delivery in sent:
            delivery.settle()
        if refused is not None:
            raise Rejected(refused[0], *refused[1])
        if discharged.remote_state != Delivery.ACCEPTED:
            raise self._refused(discharged, "the transaction is rolled back")
        if retired is not None:
            retired.settle()

    def _await_outcomes(self, posts: Sequence[tuple[Attached, bytes]], sent: Sequence[Delivery]) -> None:
        """Each of them within the time, counted from the one before: what has no credit yet, proton keeps."""
        known, links = 0, {to.link.name: to for to, _ in posts}.values()

        def further() -> bool:
            for to in links:
                to.peer.check(to.link, to.node)
            return bool(sent[known].remote_state)

        while known < len(sent):
            if not self._peer.wait(further, self._timeout_s):
                node, waiting = posts[known][0].node, posts[known][0].link.credit <= 0
                words = "grants no credit" if waiting else "does not answer to a message"
                look = "; it may be full or busy" if waiting else ""
                raise ClientProblem(f"{self._peer.url}: {node} {words} within {self._timeout_s:g} s{look}")
            while known < len(sent) and sent[known].remote_state:
                known += 1

    def _ask(self, descriptor: str, fields: list[Any]) -> Delivery:
        delivery: Delivery = self._link.send(Message(body=Described(symbol(descriptor), fields)))

        def answered() -> bool:
            self._peer.check(self._link, "the transaction coordinator")
            return bool(delivery.remote_state)

        if not self._peer.wait(answered, self._timeout_s):
            raise ClientProblem(f"{self._peer.url}: no answer to a transaction within {self._timeout_s:g} s")
        delivery.settle()
        return delivery

    def _refused(self, delivery: Delivery, otherwise: str) -> Rejected:
        condition = delivery.remote.condition
        return Rejected(-1, condition.name, condition.description or "") if condition else Rejected(-1, "", otherwise)


def _post(link: Link, octets: bytes, transaction: Any) -> Delivery:
    delivery = link.delivery(uuid.uuid4().hex)
    delivery.local.data = [transaction]
    delivery.update(_TRANSACTIONAL)
    link.stream(octets)
    link.advance()
    return delivery


def _rejection(delivery: Delivery) -> tuple[str, str] | None:
    """Condition and text; None: it was taken."""
    if delivery.remote_state == Delivery.ACCEPTED:
        return None
    if delivery.remote_state == _TRANSACTIONAL:
        return _of_outcome(delivery.remote.data or [])
    condition = delivery.remote.condition if delivery.remote_state == Delivery.REJECTED else None
    return (condition.name, condition.description or "") if condition else ("", "not accepted")


def _of_outcome(state: list[Any]) -> tuple[str, str] | None:
    """Of a transactional state: the transaction, and the outcome that the message would have."""
    outcome = state[1] if len(state) > 1 else None
    if outcome is None or int(outcome.descriptor) != _REJECTED:
        return None
    error = outcome.value[0].value if outcome.value else []
    condition, text = ([str(field or "") for field in error] + ["", ""])[:2]
    return condition, text or "rejected without a reason"
