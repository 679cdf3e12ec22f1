"""A history, told by what it is about: links, attempts, deliveries, transactions."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.torture.checks.realm_reader import Place
from tests.torture.history import Row, Said

TERMINAL = ("accepted", "rejected")
UNHEARD_MS = 5000  # what a peer was not told of may be under way so long after its link: twice the publishers' deadline


@dataclass(slots=True)
class Link:
    role: str
    node: str
    durable: str
    peer: int
    ended_ms: float = float("inf")

    def place(self, store: int) -> Place:
        return (self.node, store), self.durable


@dataclass(slots=True)
class Attempt:
    """One message on one link. `outcome` is "" while nothing is known."""

    node: str
    link: int
    peer: int
    number: int
    txn: int
    group: str
    priority: int
    sent_ms: int
    outcome: str = ""
    told_ms: int = 0


@dataclass(frozen=True, slots=True)
class Given:
    at: int  # row
    ms: int
    link: int
    eid: int
    said: Said
    count: int
    again: bool


@dataclass(frozen=True, slots=True)
class Settle:
    """What a consumer said, or was answered."""

    at: int
    link: int
    eid: int
    outcome: str
    txn: int = 0


@dataclass(slots=True)
class Txn:
    """`wanted` None: never discharged. `outcome` "": no answer."""

    wanted: bool | None = None
    outcome: str = ""
    attempts: list[tuple[int, int]] = field(default_factory=list)
    retired: list[tuple[Place, int]] = field(default_factory=list)

    @property
    def must_be(self) -> bool | None:
        """True: all of it is there; False: nothing is; None: one or the other."""
        if self.wanted and self.outcome == "accepted":
            return True
        if not self.wanted or self.outcome:
            return False
        return None


class Observed:
    """See the module's docstring."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self.links: dict[int, Link] = {}
        self.attempts: dict[tuple[int, int], Attempt] = {}
        self.given: dict[Place, list[Given]] = defaultdict(list)
        self.said: dict[Place, list[Settle]] = defaultdict(list)
        self.answered: dict[Place, list[Settle]] = defaultdict(list)
        self.damaged: list[tuple[Place, int]] = []
        self.txns: dict[int, Txn] = defaultdict(Txn)
        self.unknown: list[int] = []  # when a publisher was told that it is not known
        self.kills: list[tuple[str, int]] = []  # what, deliveries in flight
        self._stalls: list[tuple[int, int]] = []  # of the peers' own thread: end, length
        for at, (kind, ms, *fields) in enumerate(rows):
            self._add(at, kind, ms, fields)

    def _add(self, at: int, kind: str, ms: int, fields: list) -> None:  # type: ignore[type-arg]
        if kind == "link":
            link, role, node, durable, peer, _ = fields
            self.links[link] = Link(role, node, durable, peer)
        elif kind == "end":
            self.links[fields[0]].ended_ms = ms
        elif kind == "send":
            link, index, number, txn, group, priority = fields
            by = self.links[link]
            self.attempts[link, index] = Attempt(by.node, link, by.peer, number, txn, group, priority, ms)
            if txn:
                self.txns[txn].attempts.append((link, index))
        elif kind == "told":
            attempt = self.attempts[fields[0], fields[1]]
            attempt.outcome, attempt.told_ms = fields[2], ms
            if fields[2] == "released" and not attempt.txn:
                self.unknown.append(ms)
        elif kind == "received":
            link, store, eid, peer, number, sender, index, count, again = fields
            entry = Said(peer, number, sender, index)
            self.given[self.links[link].place(store)].append(Given(at, ms, link, eid, entry, count, bool(again)))
        elif kind == "damaged":
            link, store, eid = fields
            self.damaged.append((self.links[link].place(store), eid))
        elif kind in ("settle", "settled"):
            self._settlement(at, kind, fields)
        elif kind == "discharge":
            self.txns[fields[0]].wanted = bool(fields[1])
        elif kind == "discharged":
            self._discharged(at, *fields)
        elif kind == "nemesis":
            self.kills.append((fields[0], fields[1]))
        elif kind == "stalled":
            self._stalls.append((ms, fields[0]))
        else:
            raise ValueError(f"row {at}: what is {kind!r}?")

    def seen_by_ms(self, ms: float, late_ms: int) -> float:
        """When a peer has seen what reached it `late_ms` after `ms` at most: stalls of its own thread come on top."""
        until_ms = ms + late_ms
        for ended_ms, length_ms in self._stalls:
            if ms <= ended_ms and ended_ms - length_ms <= until_ms:
                until_ms += length_ms
        return until_ms

    def is_doubtful(self, attempt: Attempt) -> bool:
        """While it was on its way, some publish had an unknown result. One producer has them all, of whatever nodes; it
        then begins a new epoch, and what it sends again under that the broker cannot tell from new. A transaction has
        its own."""
        if attempt.txn:
            return False
        until_ms = attempt.told_ms or self.seen_by_ms(self.links[attempt.link].ended_ms, UNHEARD_MS)
        at = bisect_left(self.unknown, attempt.sent_ms)
        return at < len(self.unknown) and self.unknown[at] <= until_ms

    def _settlement(self, at: int, kind: str, fields: list) -> None:  # type: ignore[type-arg]
        link, store, *rest = fields
        place = self.links[link].place(store)
        settle = Settle(at, link, *rest)
        (self.said if kind == "settle" else self.answered)[place].append(settle)
        if kind == "settle" and settle.txn:
            self.txns[settle.txn].retired.append((place, settle.eid))

    def _discharged(self, at: int, number: int, outcome: str) -> None:
        txn = self.txns[number]
        txn.outcome = outcome
        if txn.must_be:  # what it retired is answered now
            for place, eid in txn.retired:
                self.answered[place].append(Settle(at, 0, eid, "accepted", number))
