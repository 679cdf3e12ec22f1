"""A client's control link on one of its sessions, and the transaction that it has declared there."""

from __future__ import annotations

from typing import Any

import proton
from cproton import lib

from tests.kit.wire.frames import STATES
from transformers.codec import Described, ULong, encode

_DECLARED, _TRANSACTIONAL, _DECLARE, _DISCHARGE, _VALUE = 0x33, 0x34, 0x31, 0x32, 0x77


class Control:
    """One request at a time. `id` is the open transaction's, while no one has asked for its end."""

    def __init__(self, session: Any, name: str) -> None:
        self.session = session
        self.link = session.sender(name)
        self.link.target.type = proton.Terminus.COORDINATOR
        self.link.open()
        self.id: bytes | None = None
        self.retired: list[tuple[Any, Any]] = []  # (link, delivery) that have an outcome inside of it
        self.asked = ""  # what is not answered yet
        self.said = 0  # messages and outcomes inside of it
        self._requests = 0

    @property
    def idle(self) -> bool:
        return not self.asked and self.id is None and self.link.credit > 0

    def declare(self) -> None:
        self._ask("declare", Described(ULong(_DECLARE), []))

    def discharge(self, *, fail: bool, identity: bytes | None = None) -> None:
        """`identity`: of another transaction than its own."""
        request = Described(ULong(_DISCHARGE), [identity or self.id, fail])
        if identity is None:
            self.id = None
        self._ask("stray" if identity else "rollback" if fail else "commit", request)

    def _ask(self, what: str, request: Described) -> None:
        self.asked, self._requests = what, self._requests + 1
        self.link.delivery(f"r{self._requests}")
        self.link.send(encode(Described(ULong(_VALUE), request)))
        self.link.advance()

    def answered(self, delivery: Any) -> bool:
        """What it retired counts as settled from here on; False where it is the client's as before."""
        request, self.asked = self.asked, ""
        if request == "declare" and delivery.remote_state == _DECLARED:
            self.id, self.said = bytes(delivery.remote.data[0]), 0
        done = request == "commit" and delivery.remote_state == delivery.ACCEPTED
        delivery.settle()
        return done

    # -- what is said inside of it

    def mark(self, delivery: Any, identity: bytes) -> None:
        """A message that is about to be sent."""
        self.said += 1
        delivery.local.data = [identity]
        delivery.update(_TRANSACTIONAL)

    def retire(self, held: tuple[Any, Any], state: str, identity: bytes, *, settle: bool) -> None:
        delivery = held[1]
        lib.pn_data_clear(lib.pn_disposition_data(lib.pn_delivery_local(delivery._impl)))  # of one that was rolled back
        self.said += 1
        delivery.local.data = [identity, _outcome(state)]
        delivery.update(_TRANSACTIONAL)
        if settle:
            delivery.settle()
        else:
            self.retired.append(held)


def _outcome(state: str) -> proton.Described:
    name = state.partition("-")[0]
    flags: list[Any] = ["failed" in state, "undeliverable" in state] if name == "modified" else []
    return proton.Described(proton.ulong(STATES[name]), flags)
