"""A peer that transacts: a control link beside the others, and its requests."""

from __future__ import annotations

from typing import Any

from tests.kit.wire import frames
from tests.kit.wire.frames import Seen
from tests.kit.wire.peer import Peer
from transformers.codec import Described, ULong

CONTROL = 7


class Transacting(Peer):
    """`declare` gives a txn-id; `discharge` gives what the gateway said of it. `settles`: the gateway settles what is
    posted when it tells of it, as `extended` does; the documented profiles do with the discharge."""

    settles = True

    def control(self, handle: int = CONTROL, name: str = "control", outcomes: list[str] | None = None) -> Seen:
        """A confirmed control link; the gateway's ATTACH."""
        self.send(frames.attach_sender(frames.COORDINATOR, handle, name, outcomes=outcomes))
        attached = self.expect("attach")
        assert attached.field(6) is not None, attached
        self.gateway_handles[handle] = attached.field(1)
        self.expect("flow")
        return attached

    def number(self) -> int:
        self._deliveries += 1
        return self._deliveries - 1

    def declare(self, handle: int = CONTROL) -> bytes:
        self.send(frames.declare(self.number(), handle))
        frame = self.expect("disposition")
        assert (frame.state, frame.field(3)) == ("declared", True), frame
        transaction: bytes = frame.field(4).value[0]
        return transaction

    def begun(self) -> bytes:
        self.control()
        return self.declare()

    def discharge(self, transaction: bytes, fail: bool = False, handle: int = CONTROL) -> str | None:
        """Its outcome; dispositions about others come behind it."""
        number = self.number()
        self.send(frames.discharge(number, transaction, fail, handle))
        frame = self.expect("disposition")
        assert frame.field(1) == number and frame.field(3) is True, frame
        return frame.state

    def post(self, transaction: bytes, *payloads: bytes, handle: int = 0, settled: bool = False) -> list[int]:
        """Publish inside a transaction; their delivery-ids."""
        numbers = [self.number() for _ in payloads]
        state = frames.in_transaction(transaction)
        pairs = zip(numbers, payloads, strict=True)
        self.send(*(frames.transfer(number, payload, handle, settled, state=state) for number, payload in pairs))
        return numbers

    def promised(self, *numbers: int, state: str = "accepted") -> None:
        """Each was told that, and no more, inside its transaction."""
        assert self.dispositions(len(numbers)) == dict.fromkeys(numbers, (f"transactional {state}", self.settles))

    def ended(self, *numbers: int, state: str = "accepted") -> None:
        """Its transaction is over: each is told what became of it and settled; what has been settled hears nothing."""
        if self.settles:
            self.nothing_at_once()
        else:
            assert self.dispositions(len(numbers)) == dict.fromkeys(numbers, (state, True))

    def until_told(self, numbers: list[int], last: int) -> dict[int, str | None]:
        """What was said of those deliveries when they were settled, or in the end."""
        states: dict[int, str | None] = {}
        while last not in states or not set(numbers) <= set(states):
            seen = self.expect("disposition")
            if seen.field(3) is True:
                end = seen.field(1) if seen.field(2) is None else seen.field(2)
                states.update(dict.fromkeys(range(seen.field(1), end + 1), seen.state))
        return states

    def until(self, name: str) -> Seen:
        """The next frame of that name, whatever comes before."""
        while True:
            for index, seen in enumerate(self.seen):
                if seen.name == name:
                    del self.seen[: index + 1]
                    return seen
            self.seen.clear()
            assert self.read(10.0), f"no {name}"

    def leave(self, handle: int = 1) -> None:
        """Close a consuming link."""
        self.send(frames.detach(handle))
        self.until("detach")

    def retire(
        self, transaction: bytes, *numbers: int, outcome: Described | None = None, settled: bool = False
    ) -> None:
        """State an outcome inside a transaction."""
        self.settle(numbers, frames.in_transaction(transaction, outcome or frames.state("accepted")), settled)


def request(descriptor: Any, fields: list[Any]) -> Described:
    return Described(ULong(descriptor) if isinstance(descriptor, int) else descriptor, fields)
