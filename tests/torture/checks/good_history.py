"""A history in which every promise is kept, and what the realm then keeps; tests plant their breaches in it.

May import: the standard library, `tests.torture`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.torture.checks import breaches
from tests.torture.history import Row, Said
from tests.torture.realm_reader import Kept, Store
from tests.torture.story import Story

Q, N = ("q", 71), ("n", 72)  # stores
QUEUE, DURABLE = (Q, "queue"), (N, "d")
NAMES = {"P": 1, "C1": 2, "C2": 3, "D": 4, "S": 5, "T": 6}  # links
STORES = {"C1": 71, "C2": 71, "D": 72, "S": 72}
LANE = ("", 4)


@dataclass
class Scene:
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
        return {breach.promise for breach in breaches(Story(self.rows), self.kept)}

    def receive(self, link: str, eid: int, said: Said, count: int = 0, again: int = 0, store: int = 0) -> None:
        self.note("received", NAMES[link], store or STORES[link], eid, *said, count, again)

    def end(self, link: str, eid: int, outcome: str = "accepted", store: int = 0) -> None:
        self.note("settle", NAMES[link], store or STORES[link], eid, outcome, 0)
        self.note("settled", NAMES[link], store or STORES[link], eid, outcome)


def said_in(kept: Kept, store: Store) -> list[tuple[int, Said]]:
    return [(eid, said) for eid, said in kept.events[store].items() if said is not None]


def good_scene() -> Scene:
    scene = Scene()
    kept = scene.kept
    kept.starts = {QUEUE: 0, DURABLE: 10}
    kept.terminal = {QUEUE: set(), DURABLE: set()}
    kept.events = {Q: {}, N: {}}
    kept.partitions = {Q: 0, N: 0}
    scene.note("link", 1, "publish", "q", "", 1, "queue")
    scene.note("link", 6, "publish", "n", "", 1, "channel")
    scene.note("link", 2, "subscribe", "q", "queue", 2, "queue")
    scene.note("link", 3, "subscribe", "q", "queue", 3, "queue")
    scene.note("link", 4, "subscribe", "n", "d", 4, "channel")
    scene.note("link", 5, "subscribe", "n", "", 5, "channel")
    for index in range(6):
        for link, store, first in ((1, Q, 0), (6, N, 10)):
            said = Said(1, index + 1, link, index)
            scene.note("send", link, index, index + 1, 0, *LANE)
            kept.events[store][first + index * 2] = said  # every other offset is no event
            scene.note("told", link, index, "accepted", "")
    for eid, said in sorted(said_in(kept, Q)):
        scene.receive("C1", eid, said)
        scene.end("C1", eid)
        kept.terminal[QUEUE].add(eid)
    for eid, said in sorted(said_in(kept, N)):
        scene.receive("D", eid, said)
        scene.receive("S", eid, said)
        scene.end("D", eid)
        kept.terminal[DURABLE].add(eid)
    return scene
