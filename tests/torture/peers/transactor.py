"""A peer that works in transactions: takes from a queue, posts to two nodes, and discharges all of it as a whole.

Some transactions are rolled back, some are left open by a connection that is cut; the next one is declared while the
discharge of the one before is under way.
"""

from __future__ import annotations

import itertools
from collections import deque
from dataclasses import dataclass, field
from random import Random
from typing import Any, NamedTuple

from tests.torture.history import Event, History, Said, read_body, write_body
from tests.torture.peers import frames
from tests.torture.peers.codec import NULL, symbols
from tests.torture.peers.consumer import header_of
from tests.torture.peers.lanes import Lanes, message
from tests.torture.peers.peer import Peer

CONTROL, INPUT = 0, 3  # handles
CREDIT = 100
POSTS = 12  # to each node in one transaction, at most
THINKS_S = 0.08
COMMITTED, ROLLED_BACK = 0.75, 0.22  # the rest is left open
TRANSACTIONS = itertools.count(1)
Delivery = tuple[int, Event]


class Output(NamedTuple):
    node: str
    kind: str  # queue, channel
    lanes: Lanes = Lanes.NONE


@dataclass(slots=True, eq=False)
class Work:
    """One transaction of this connection. `posts`: handle, index, number. `promised`: handle, index of those that were
    accepted and settled inside; what became of them is what is answered to the discharge."""

    number: int
    identity: bytes = b""
    until_s: float = 0.0  # it thinks
    is_discharged: bool = False
    wanted: bool = True
    posts: list[tuple[int, int, int]] = field(default_factory=list)
    taken: list[Delivery] = field(default_factory=list)
    promised: list[tuple[int, int]] = field(default_factory=list)


class Transactor(Peer):
    """At most one transaction open, and the discharge of the one before it under way. Takes from the queue `source`,
    which has no groups (they would wait for it when it is done), and posts to `outputs`."""

    def __init__(
        self, name: str, number: int, port: int, history: History, random: Random, source: str, outputs: list[Output]
    ) -> None:
        self._source = source
        self._outputs = dict(enumerate(outputs, 1))  # by handle
        super().__init__(name, number, port, history, random)
        self.committed = 0
        self._next = 1
        self._again: deque[int] = deque()
        self._held: list[Delivery] = []
        self._waiting: dict[int, Event] = {}  # by delivery, ended outside of any transaction
        self._forget()

    def _forget(self) -> None:
        self._open: Work | None = None  # declared, or about to be
        self._requests: dict[int, Work] = {}  # delivery on the control link -> whose declare or discharge
        self._posted: dict[int, tuple[Work, int, int]] = {}  # delivery -> work, handle, index; not settled yet
        self._sent: dict[int, int] = dict.fromkeys((CONTROL, *self._outputs), 0)
        self._limits: dict[int, int] = dict.fromkeys((CONTROL, *self._outputs), 0)
        self._count = self._credit = 0

    @property
    def in_flight(self) -> int:
        promised = sum(len(work.promised) for work in self._works())
        return len(self._posted) + promised + len(self._held) + len(self._waiting) + len(self._requests)

    def _works(self) -> list[Work]:
        """Those of which it has not heard the end."""
        works = [*self._requests.values(), *([self._open] if self._open else [])]
        return list({work.number: work for work in works}.values())

    @property
    def is_done(self) -> bool:
        return self.is_ending and not self._again and not self._requests and self._open is None

    # -- links

    def attach(self) -> None:
        self.send(frames.attach_sender(f"{self.name}/0", CONTROL, frames.COORDINATOR, OUTCOMES))
        for handle, output in self._outputs.items():
            target = frames.terminus(frames.TARGET, output.node, "queue" if output.kind == "queue" else "topic")
            self.send(frames.attach_sender(f"{self.name}/{handle}", handle, target))
        source = frames.terminus(frames.SOURCE, self._source, "queue")
        self.send(frames.attach_receiver(f"{self.name}/{INPUT}", INPUT, source, second=True))

    def attached(self, handle: int, fields: list[Any]) -> None:
        if handle == CONTROL:
            self.begin_link(handle, "coordinate", "", "", "")
        elif handle == INPUT:
            self.begin_link(handle, "subscribe", self._source, "queue", "queue")
        else:
            self.begin_link(handle, "publish", self._outputs[handle].node, "", self._outputs[handle].kind)

    def credited(self, handle: int, credit: int) -> None:
        self._limits[handle] = credit

    def _room(self, handle: int) -> int:
        return self._limits[handle] - self._sent[handle]

    def _transfer(self, handle: int, message: bytes, state: bytes = NULL) -> int:
        delivery = self.transfers_out
        self.send(frames.transfer(handle, delivery, message, state))
        self._sent[handle] += 1
        self.transfers_out += 1
        return delivery

    # -- what comes

    def message(self, fields: list[Any], payload: bytes) -> None:
        self._count += 1
        self._credit -= 1
        event = frames.tagged(fields[2])
        body = read_body(payload)
        if body is None:
            self.history.note("damaged", self.links[INPUT], *event)
        else:
            count, again = header_of(payload)
            self.history.note("received", self.links[INPUT], *event, *body, count, int(again))
        self._held.append((fields[1], event))

    def stated(self, first: int, last: int, settled: bool, state: Any) -> None:
        outcome = frames.STATES[state.code] if state is not None else "none"
        for delivery in range(first, last + 1):
            if delivery in self._requests:
                self._answered(self._requests.pop(delivery), outcome, state)
            elif settled and delivery in self._posted:  # else it is told again when the transaction has ended
                work, handle, index = self._posted.pop(delivery)
                inside = frames.STATES[state.value[1].code] if outcome == "transactional" else outcome
                if outcome == "transactional" and inside == "accepted":
                    work.promised.append((handle, index))
                else:
                    self.history.note("told", self.links[handle], index, inside, "")

    def echoed(self, first: int, last: int, settled: bool, state: Any) -> None:
        outcome = frames.STATES[state.code] if state is not None else "none"
        for delivery in range(first, last + 1):
            if settled and delivery in self._waiting:
                self.history.note("settled", self.links[INPUT], *self._waiting.pop(delivery), outcome)

    def _answered(self, work: Work, outcome: str, state: Any) -> None:
        if not work.is_discharged:
            assert outcome == "declared", outcome
            work.identity = bytes(state.value[0])
            return
        self.history.note("discharged", work.number, outcome)
        is_there = work.wanted and outcome == "accepted"
        for handle, index in work.promised:
            self.history.note("told", self.links[handle], index, "accepted" if is_there else "released", "")
        if is_there:
            self.committed += 1
            return
        self._again.extend(number for _, _, number in work.posts)
        for delivery, _ in work.taken:  # ours as before
            self._waiting.pop(delivery, None)
        self._held += work.taken

    # -- what it does

    def advance(self, now: float) -> None:
        if len(self.links) < 2 + len(self._outputs):
            return
        if self._credit < CREDIT // 2 and len(self._held) < CREDIT and not self.is_ending:
            self._credit = CREDIT
            self.send(frames.flow(self.transfers_in, self.transfers_out, INPUT, self._count, CREDIT))
        if self._open is None:
            self._declare()
        elif self._open.identity and not self._open.until_s:
            self._fill(self._open, now)
        elif self._open.identity and now >= self._open.until_s:
            self._discharge(self._open, now)
        if self.is_ending and self._open is None:
            self._end_the_rest()

    def _declare(self) -> None:
        is_wanted = bool(self._again) or not self.is_ending
        if is_wanted and self._room(CONTROL) > 0 and len(self._requests) < 2:
            self._open = Work(next(TRANSACTIONS))
            self._requests[self._transfer(CONTROL, frames.declare())] = self._open

    def _fill(self, work: Work, now: float) -> None:
        for handle in self._outputs:
            count = min(self.random.randint(0, POSTS), self._room(handle))
            for _ in range(min(count, len(self._again)) if self.is_ending else count):
                self._post(work, handle)
        self.random.shuffle(self._held)
        count = self.random.randint(0, len(self._held))
        work.taken, self._held = self._held[:count], self._held[count:]
        for delivery, event in work.taken:
            self.history.note("settle", self.links[INPUT], *event, "accepted", work.number)
            state = frames.in_transaction(work.identity, frames.outcome("accepted"))
            self.send(frames.disposition(delivery, delivery, state, False))
            self._waiting[delivery] = event
        work.until_s = now + self.random.random() * THINKS_S

    def _post(self, work: Work, handle: int) -> None:
        if self._again:
            number = self._again.popleft()
        else:
            number, self._next = self._next, self._next + 1
        link, index = self.links[handle], self._sent[handle]
        body = write_body(Said(self.number, number, link, index), self.random.choice((0, 40, 300)))
        lane = self._outputs[handle].lanes.any(self.random)
        self.history.note("send", link, index, number, work.number, *lane)
        work.posts.append((handle, index, number))
        state = frames.in_transaction(work.identity)
        self._posted[self._transfer(handle, message(lane, f"{link}:{index}", body), state)] = (work, handle, index)

    def _discharge(self, work: Work, now: float) -> None:
        if self._room(CONTROL) <= 0:
            return
        fate = 0.0 if self.is_ending else self.random.random()
        if fate > COMMITTED + ROLLED_BACK:
            self.drop("left a transaction open", now)
            return
        work.is_discharged, work.wanted = True, fate <= COMMITTED
        self.history.note("discharge", work.number, int(work.wanted))
        message = frames.discharge(work.identity, fail=not work.wanted)
        self._requests[self._transfer(CONTROL, message)] = work
        self._open = None

    def _end_the_rest(self) -> None:
        for delivery, event in self._held:
            self.history.note("settle", self.links[INPUT], *event, "accepted", 0)
            self.send(frames.disposition(delivery, delivery, frames.outcome("accepted"), False))
            self._waiting[delivery] = event
        self._held.clear()

    def gone(self) -> None:
        """Whatever was under way may be done or not: its numbers are said again."""
        self._again.extend(number for work in self._works() for _, _, number in work.posts)
        self._held.clear()
        self._waiting.clear()
        self._forget()


OUTCOMES = symbols("amqp:accepted:list", "amqp:rejected:list")
