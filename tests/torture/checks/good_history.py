"""A history in which every guarantee holds, and what the realm then keeps; tests plant violations in it."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.torture.checks.guarantees import violations
from tests.torture.checks.observed import Observed
from tests.torture.checks.realm_reader import Kept, Store
from tests.torture.history import Row, Said

Q, N = ("q", 71), ("n", 72)  # stores
QUEUE, DURABLE = (Q, "queue"), (N, "d")
NAMES = {"P": 1, "C1": 2, "C2": 3, "D": 4, "S": 5, "T": 6}  # links
STORES = {"C1": 71, "C2": 71, "D": 72, "S": 72}
LANE = ("", 4)


@dataclass
class GoodHistory:
    """Six numbers sent to a queue and to a channel; all stored; consumed in order. Then something is planted."""

    rows: list[Row] = field(default_factory=list)
    kept: Kept = field(default_factory=Kept)

    def note(self, kind: str, *fields: object) -> None:
        self.rows.append((kind, 10 * len(self.rows), *fields))

    def find(self, kind: str, *fields: object) -> int:
        return next(at for at, row in enumerate(self.rows) if row[0] == kind and row[2 : 2 + len(fields)] == fields)

    def replace(self, kind: str, *fields: object, by: tuple[object, ...]) -> None:
        at = self.find(kind, *fields)
        self.rows[at] = (*self.rows[at][:2], *by)

    def found(self) -> set[str]:
        return {violation.guarantee for violation in violations(Observed(self.rows), self.kept)}

    def receive(self, link: str, eid: int, body: Said, count: int = 0, again: int = 0, store: int = 0) -> None:
        self.note("received", NAMES[link], store or STORES[link], eid, *body, count, again)

    def end(self, link: str, eid: int, outcome: str = "accepted", store: int = 0) -> None:
        self.note("settle", NAMES[link], store or STORES[link], eid, outcome, 0)
        self.note("settled", NAMES[link], store or STORES[link], eid, outcome)


def said_in(kept: Kept, store: Store) -> list[tuple[int, Said]]:
    return [(eid, body) for eid, body in kept.events[store].items() if body is not None]


def good_history() -> GoodHistory:
    history = GoodHistory()
    kept = history.kept
    kept.starts = {QUEUE: 0, DURABLE: 10}
    kept.terminal = {QUEUE: set(), DURABLE: set()}
    kept.events = {Q: {}, N: {}}
    kept.partitions = {Q: 0, N: 0}
    history.note("link", 1, "publish", "q", "", 1, "queue")
    history.note("link", 6, "publish", "n", "", 1, "channel")
    history.note("link", 2, "subscribe", "q", "queue", 2, "queue")
    history.note("link", 3, "subscribe", "q", "queue", 3, "queue")
    history.note("link", 4, "subscribe", "n", "d", 4, "channel")
    history.note("link", 5, "subscribe", "n", "", 5, "channel")
    for index in range(6):
        for link, store, first in ((1, Q, 0), (6, N, 10)):
            body = Said(1, index + 1, link, index)
            history.note("send", link, index, index + 1, 0, *LANE)
            kept.events[store][first + index * 2] = body  # every other offset is no event
            history.note("told", link, index, "accepted", "")
    for eid, body in sorted(said_in(kept, Q)):
        history.receive("C1", eid, body)
        history.end("C1", eid)
        kept.terminal[QUEUE].add(eid)
    for eid, body in sorted(said_in(kept, N)):
        history.receive("D", eid, body)
        history.receive("S", eid, body)
        history.end("D", eid)
        kept.terminal[DURABLE].add(eid)
    return history
