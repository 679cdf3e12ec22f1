"""A peer that has numbers to say, and says each until it is accepted."""

from __future__ import annotations

from collections import deque
from random import Random
from typing import Any

from tests.torture.history import History, Said, write_body
from tests.torture.peers import frames
from tests.torture.peers.codec import NULL
from tests.torture.peers.lanes import Lanes, message
from tests.torture.peers.peer import Peer

BURST = 120  # messages in one go, at most


class Publisher(Peer):
    """`rate` numbers a second, `window` unsettled at most; a number whose fate is unknown is said again."""

    def __init__(
        self,
        name: str,
        number: int,
        port: int,
        history: History,
        random: Random,
        node: str,
        kind: str,
        window: int,
        lanes: Lanes = Lanes.NONE,
    ) -> None:
        super().__init__(name, number, port, history, random)
        self.node, self.kind, self.window, self.lanes = node, kind, window, lanes
        self.rate = 150.0
        self.accepted = 0
        self._next = 1
        self._again: deque[int] = deque()
        self._unsettled: dict[int, tuple[int, int]] = {}  # delivery -> index, number
        self._index = 0
        self._limit = 0  # delivery-count that the gateway's credit allows
        self._due = 0.0
        self._then: float | None = None

    @property
    def in_flight(self) -> int:
        return len(self._unsettled)

    @property
    def is_done(self) -> bool:
        return self.is_ending and not self._again and not self._unsettled

    def attach(self) -> None:
        capability = "queue" if self.kind == "queue" else "topic"
        self._index = self._limit = 0
        self.send(frames.attach_sender(f"{self.name}/0", 0, frames.terminus(frames.TARGET, self.node, capability)))

    def attached(self, handle: int, fields: list[Any]) -> None:
        self.begin_link(handle, "publish", self.node, "", self.kind)

    def credited(self, handle: int, credit: int) -> None:
        self._limit = credit

    def advance(self, now: float) -> None:
        if 0 not in self.links:
            return
        self._due = min(self._due + (now - (self._then or now)) * self.rate, float(BURST))
        self._then = now
        room = min(self.window - len(self._unsettled), self._limit - self._index, BURST)
        if not self.is_pushing:
            room = min(room, int(self._due))
        if self.is_ending:
            room = min(room, len(self._again))
        for _ in range(room):
            self._say(self._number())
        self._due = max(0.0, self._due - max(room, 0))

    def _number(self) -> int:
        if self._again:
            return self._again.popleft()
        self._next += 1
        return self._next - 1

    def _say(self, number: int) -> None:
        link, index = self.links[0], self._index
        body = write_body(Said(self.number, number, link, index), self.random.choice((0, 40, 300)))
        lane = self.lanes.any(self.random)
        self.history.note("send", link, index, number, 0, *lane)
        self.send(frames.transfer(0, self.transfers_out, message(lane, f"{link}:{index}", body), NULL))
        self._unsettled[self.transfers_out] = (index, number)
        self._index += 1
        self.transfers_out += 1

    def stated(self, first: int, last: int, settled: bool, state: Any) -> None:
        outcome = frames.STATES[state.code] if state is not None else "none"
        for delivery in range(first, last + 1):
            if not settled or delivery not in self._unsettled:
                continue
            index, number = self._unsettled.pop(delivery)
            condition = state.value[0].value[0] if outcome == "rejected" and state.value else ""
            self.history.note("told", self.links[0], index, outcome, condition)
            if outcome == "accepted":
                self.accepted += 1
            else:
                self._again.append(number)

    def gone(self) -> None:
        self._again.extendleft(number for _, number in reversed(self._unsettled.values()))
        self._unsettled.clear()
        self._then = None
