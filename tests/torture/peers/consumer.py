"""A peer that takes, thinks a while, and says what became of it."""

from __future__ import annotations

from random import Random
from typing import Any, Literal

from tests.torture.history import Event, History, read_body
from tests.torture.peers import frames
from tests.torture.peers.codec import Described, read
from tests.torture.peers.peer import Peer

CREDIT = 400
OUTCOMES = ("accepted", "released", "modified", "rejected")
WEIGHTS = (90, 4, 4, 2)
Mode = Literal["queue", "durable", "plain"]


class Consumer(Peer):
    """Holds up to `hold` deliveries before it settles some of them, in any order. Plain subscriptions only listen."""

    def __init__(
        self, name: str, number: int, port: int, history: History, random: Random, node: str, mode: Mode, hold: int
    ) -> None:
        super().__init__(name, number, port, history, random)
        self.node, self.mode, self.hold = node, mode, hold
        self.patience_s = 0.25
        self._held: list[tuple[int, Event]] = []  # by delivery
        self._asked: dict[int, Event] = {}  # by delivery; waits for its answer
        self._count = 0
        self._credit = 0
        self._held_s = 0.0

    @property
    def in_flight(self) -> int:
        return len(self._held) + len(self._asked)

    @property
    def durable(self) -> str:
        return {"queue": "queue", "durable": f"{self.name}:{self.name}/1", "plain": ""}[self.mode]

    def attach(self) -> None:
        capability = "queue" if self.mode == "queue" else "topic"
        source = frames.terminus(frames.SOURCE, self.node, capability, 2 if self.mode == "durable" else 0)
        self.send(frames.attach_receiver(f"{self.name}/1", 1, source, second=self.number % 2 == 1))

    def attached(self, handle: int, fields: list[Any]) -> None:
        self.begin_link(handle, "subscribe", self.node, self.durable, "queue" if self.mode == "queue" else "channel")
        self._count = self._credit = 0
        self._top_up()

    def _top_up(self) -> None:
        if self._credit < CREDIT // 2 and self.in_flight < self.hold + CREDIT:
            self._credit = CREDIT
            self.send(frames.flow(self.transfers_in, 0, 1, self._count, CREDIT))

    def message(self, fields: list[Any], payload: bytes) -> None:
        self._count += 1
        self._credit -= 1
        link = self.links[1]
        event = frames.tagged(fields[2])
        count, again = header_of(payload)
        body = read_body(payload)
        if body is None:
            self.history.note("damaged", link, *event)
        else:
            self.history.note("received", link, *event, *body, count, int(again))
        if self.mode != "plain":
            self._held.append((fields[1], event))
        self._top_up()

    def advance(self, now: float) -> None:
        if 1 not in self.links or self.mode == "plain":
            return
        self._top_up()
        if not self._held:
            self._held_s = now
            return
        is_due = now - self._held_s > self.patience_s or len(self._held) >= self.hold
        if not is_due or (self.is_pushing and len(self._held) < self.hold):
            return
        self._held_s = now
        self.random.shuffle(self._held)
        keep = 0 if self.is_ending else self.random.randrange(len(self._held) // 2 + 1)
        for delivery, event in self._held[keep:]:
            self._settle(delivery, event)
        del self._held[keep:]

    def _settle(self, delivery: int, event: Event) -> None:
        outcome = "accepted" if self.is_ending else self.random.choices(OUTCOMES, WEIGHTS)[0]
        self.history.note("settle", self.links[1], *event, outcome, 0)
        settled = self.number % 3 == 0 and self.random.random() < 0.2  # now and then no one waits for the answer
        if not settled:
            self._asked[delivery] = event
        self.send(frames.disposition(delivery, delivery, frames.outcome(outcome), settled))

    def echoed(self, first: int, last: int, settled: bool, state: Any) -> None:
        outcome = frames.STATES[state.code] if state is not None else "none"
        for delivery in range(first, last + 1):
            if settled and delivery in self._asked:
                self.history.note("settled", self.links[1], *self._asked.pop(delivery), outcome)

    def gone(self) -> None:
        self._held.clear()
        self._asked.clear()


def header_of(message: bytes) -> tuple[int, bool]:
    """delivery-count, and whether it may have been given before."""
    if message[:3] != b"\x00\x53\x70":
        return 0, False
    header, _ = read(message)
    assert isinstance(header, Described)
    fields = [*header.value, None, None, None, None, None]
    return fields[4] or 0, not fields[3]
