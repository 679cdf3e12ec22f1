"""The checker sees each thing that it is there to see: a good history, and one planted breach at a time."""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest

from tests.torture.checks import CHECKS, breaches
from tests.torture.history import Row, Said, read_body, write_body
from tests.torture.realm_reader import Kept, read_sqlite
from tests.torture.story import Story

QUEUE, DURABLE, PLAIN = ("q", "queue"), ("n", "d"), ("n", "")
NAMES = {"P": 1, "C1": 2, "C2": 3, "D": 4, "S": 5, "T": 6}  # links


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

    def receive(self, link: str, eid: int, said: Said, count: int = 0, again: int = 0) -> None:
        self.note("received", NAMES[link], eid, *said, count, again)

    def end(self, link: str, eid: int, outcome: str = "accepted", txn: int = 0) -> None:
        self.note("settle", NAMES[link], eid, outcome, txn)
        self.note("settled", NAMES[link], eid, outcome)


def said_in(kept: Kept, node: str) -> list[tuple[int, Said]]:
    return [(eid, said) for eid, said in kept.events[node].items() if said is not None]


@pytest.fixture
def scene() -> Scene:
    scene = Scene()
    kept = scene.kept
    kept.starts = {QUEUE: 0, DURABLE: 10}
    kept.terminal = {QUEUE: set(), DURABLE: set()}
    kept.events = {"q": {}, "n": {}}
    scene.note("link", 1, "publish", "q", "", 1, "queue")
    scene.note("link", 6, "publish", "n", "", 1, "channel")
    scene.note("link", 2, "subscribe", *QUEUE, 2, "queue")
    scene.note("link", 3, "subscribe", *QUEUE, 3, "queue")
    scene.note("link", 4, "subscribe", *DURABLE, 4, "channel")
    scene.note("link", 5, "subscribe", *PLAIN, 5, "channel")
    for index in range(6):
        for link, node, first in ((1, "q", 0), (6, "n", 10)):
            said = Said(1, index + 1, link, index)
            scene.note("send", link, index, index + 1, 0)
            kept.events[node][first + index * 2] = said  # every other offset is no event
            scene.note("told", link, index, "accepted", "")
    for eid, said in sorted(said_in(kept, "q")):
        scene.receive("C1", eid, said)
        scene.end("C1", eid)
        kept.terminal[QUEUE].add(eid)
    for eid, said in sorted(said_in(kept, "n")):
        scene.receive("D", eid, said)
        scene.receive("S", eid, said)
        scene.end("D", eid)
        kept.terminal[DURABLE].add(eid)
    return scene


def test_a_good_history_breaks_no_promise(scene: Scene) -> None:
    assert scene.found() == set()


def _lost(scene: Scene) -> None:
    scene.rows = [row for row in scene.rows if not (row[0] in ("received", "settle", "settled") and row[3] == 4)]
    del scene.kept.events["q"][4]


def _duplicated(scene: Scene) -> None:
    scene.kept.events["q"][20] = scene.kept.events["q"][4]
    scene.kept.terminal[QUEUE].add(20)
    scene.receive("C1", 20, scene.kept.events["q"][4] or Said(0, 0, 0, 0))
    scene.end("C1", 20)


def _refused(scene: Scene) -> None:
    scene.replace("told", 1, 2, by=(1, 2, "rejected", "amqp:resource-limit-exceeded"))


def _stranger(scene: Scene) -> None:
    scene.kept.events["q"][20] = None
    scene.kept.terminal[QUEUE].add(20)
    scene.note("settle", 2, 20, "accepted", 0)


def _swapped(scene: Scene) -> None:
    events = scene.kept.events["q"]
    events[2], events[4] = events[4], events[2]
    for eid in (2, 4):
        at = scene.find("received", 2, eid)
        said = events[eid]
        assert said is not None
        scene.rows[at] = (*scene.rows[at][:4], *said, 0, 0)


def _unstored(scene: Scene) -> None:
    scene.receive("S", 99, Said(1, 1, 6, 0))


def _damaged(scene: Scene) -> None:
    scene.note("damaged", 2, 4)


def _given_again(scene: Scene) -> None:
    scene.receive("C2", 4, Said(1, 3, 1, 2), again=1)


def _given_twice(scene: Scene) -> None:
    at = scene.find("received", 2, 4)
    row = ("received", scene.rows[at][1], 3, 4, *Said(1, 3, 1, 2), 0, 1)
    scene.rows.insert(at + 1, row)


def _uncommitted(scene: Scene) -> None:
    scene.kept.terminal[QUEUE].discard(4)
    scene.kept.starts[QUEUE] = 6  # not left over: only the confirmation was wrong


def _unasked(scene: Scene) -> None:
    scene.rows = [row for row in scene.rows if not (row[0] in ("settle", "settled") and row[2:4] == (2, 4))]


def _left(scene: Scene) -> None:
    scene.rows = [row for row in scene.rows if not (row[0] in ("received", "settle", "settled") and row[3] == 14)]
    scene.rows = [row for row in scene.rows if not (row[0] == "received" and row[2] == 5)]
    scene.kept.terminal[DURABLE].discard(14)


def _deleted(scene: Scene) -> None:
    """What has ended may go, and is known from before; this one has not ended."""
    scene.kept.trimmed["q"] = {*scene.kept.terminal[QUEUE]}
    assert scene.found() == set()
    ended = scene.kept.terminal[QUEUE].pop()
    assert ended in scene.kept.trimmed["q"]


def _count_lost(scene: Scene) -> None:
    at = scene.find("settle", 2, 4)
    failed = [("settle", 0, 2, 4, "modified", 0), ("settled", 0, 2, 4, "modified")]
    scene.rows[at:at] = [*failed, ("received", 0, 2, 4, *Said(1, 3, 1, 2), 0, 1)]


def _count_invented(scene: Scene) -> None:
    at = scene.find("received", 2, 4)
    scene.rows[at] = (*scene.rows[at][:8], 1, 1)


def _skipped(scene: Scene) -> None:
    del scene.rows[scene.find("received", 5, 14)]


def _backwards(scene: Scene) -> None:
    first, second = scene.find("received", 4, 12), scene.find("received", 4, 14)
    scene.rows[first], scene.rows[second] = scene.rows[second], scene.rows[first]


def _transact(scene: Scene, *, stored: bool, wanted: bool | None, outcome: str) -> None:
    """Transaction 7: two more numbers, and the retirement of EID 10 of the queue."""
    for index in (6, 7):
        scene.note("send", 1, index, index + 1, 7)
        scene.kept.events["q"][8 + index * 2] = Said(1, index + 1, 1, index)
        if stored or index == 6:
            scene.kept.terminal[QUEUE].add(8 + index * 2)
            scene.note("settle", 2, 8 + index * 2, "accepted", 0)
        else:
            del scene.kept.events["q"][8 + index * 2]
    if wanted is not None:
        scene.note("discharge", 7, int(wanted))
    if outcome:
        scene.note("discharged", 7, outcome)


def _torn(scene: Scene) -> None:
    _transact(scene, stored=False, wanted=True, outcome="")


def _committed_in_part(scene: Scene) -> None:
    _transact(scene, stored=False, wanted=True, outcome="accepted")


def _rolled_back(scene: Scene) -> None:
    _transact(scene, stored=True, wanted=False, outcome="accepted")


def _never_discharged(scene: Scene) -> None:
    _transact(scene, stored=True, wanted=None, outcome="")


PLANTED: list[tuple[str, Callable[[Scene], None]]] = [
    ("accepted but lost", _lost),
    ("duplicated", _duplicated),
    ("refused but stored", _refused),
    ("stored but never sent", _stranger),
    ("out of order", _swapped),
    ("given but not stored", _unstored),
    ("given but not stored", _damaged),
    ("acknowledged and given again", _given_again),
    ("given twice at a time", _given_twice),
    ("acknowledged but not committed", _uncommitted),
    ("committed but not acknowledged", _unasked),
    ("never given to the end", _left),
    ("deleted before its end", _deleted),
    ("attempts miscounted", _count_lost),
    ("attempts miscounted", _count_invented),
    ("new ones out of order", _skipped),
    ("new ones out of order", _backwards),
    ("torn transaction", _torn),
    ("torn transaction", _committed_in_part),
    ("aborted seen", _rolled_back),
    ("aborted seen", _never_discharged),
]


@pytest.mark.parametrize(("promise", "plant"), PLANTED, ids=lambda each: getattr(each, "__name__", "").strip("_"))
def test_a_planted_breach_is_seen(scene: Scene, promise: str, plant: Callable[[Scene], None]) -> None:
    plant(scene)
    assert promise in scene.found()


def test_every_promise_has_a_planted_breach() -> None:
    assert {promise for promise, _ in PLANTED} == set(CHECKS)


def test_what_at_least_once_and_unknown_results_allow_is_no_breach(scene: Scene) -> None:
    """Said twice and stored twice; a commit without an answer that is there as a whole; a release and its return."""
    scene.note("send", 1, 6, 6, 0)
    scene.kept.events["q"][20] = Said(1, 6, 1, 6)
    scene.receive("C1", 20, Said(1, 6, 1, 6))
    scene.end("C1", 20, "released")
    scene.receive("C2", 20, Said(1, 6, 1, 6), again=1)
    scene.end("C2", 20, "modified")
    scene.receive("C1", 20, Said(1, 6, 1, 6), count=1, again=1)
    scene.end("C1", 20)
    scene.kept.terminal[QUEUE].add(20)
    scene.note("send", 1, 7, 7, 9)
    scene.note("discharge", 9, 1)
    scene.kept.events["q"][22] = Said(1, 7, 1, 7)
    scene.receive("C2", 22, Said(1, 7, 1, 7))
    scene.end("C2", 22)
    scene.kept.terminal[QUEUE].add(22)
    assert scene.found() == set()


def test_a_double_is_forgiven_only_while_a_result_was_unknown(scene: Scene) -> None:
    _duplicated(scene)
    assert scene.found() == {"duplicated"}
    unknown = ("told", scene.rows[scene.find("send", 1, 2)][1], 1, 1, "released", "")
    scene.rows.insert(scene.find("told", 1, 2), unknown)
    assert scene.found() == set()
    scene.replace("told", 1, 1, "released", by=(6, 1, "released", ""))
    assert scene.found() == set(), "one producer sends to both nodes"
    scene.replace("told", 6, 1, "released", by=(6, 1, "accepted", ""))
    assert scene.found() == {"duplicated"}


def test_a_double_is_not_forgiven_long_after_its_link(scene: Scene) -> None:
    """What nobody was told of may have been under way when a result was unknown, but not for ever."""
    _duplicated(scene)
    told = scene.find("told", 1, 2)
    ended_ms = scene.rows[told][1]
    scene.rows[told] = ("end", ended_ms, 1, "cut")
    scene.rows.append(("told", ended_ms + 1000, 6, 1, "released", ""))
    assert scene.found() == set()
    scene.rows[-1] = ("told", ended_ms + 10_000, 6, 1, "released", "")
    assert scene.found() == {"duplicated"}


def test_a_transaction_is_never_doubled(scene: Scene) -> None:
    _duplicated(scene)
    send = scene.find("send", 1, 2)
    scene.rows[send] = (*scene.rows[send][:5], 9)
    scene.rows.insert(send + 1, ("told", scene.rows[send][1], 6, 1, "released", ""))
    assert "duplicated" in scene.found()


def test_an_aborted_retirement_that_is_kept_is_seen(scene: Scene) -> None:
    at = scene.find("settle", 2, 4)
    scene.rows[at] = (*scene.rows[at][:5], 8)
    del scene.rows[scene.find("settled", 2, 4)]
    scene.note("discharge", 8, 0)
    scene.note("discharged", 8, "accepted")
    assert scene.found() == {"committed but not acknowledged"}


@pytest.mark.parametrize("size", [0, 28, 400])
def test_a_body_says_who_wrote_it(size: int) -> None:
    body = write_body(Said(3, 1 << 40, 7, 9), size)
    assert len(body) >= size
    assert read_body(b"\x00\x53\x75\xa0" + body) == Said(3, 1 << 40, 7, 9)
    at = Random(1).randrange(len(body) - 28, len(body))
    assert read_body(body[:at] + bytes((body[at] ^ 1,)) + body[at + 1 :]) is None
    assert read_body(b"short") is None


def test_what_a_realm_keeps_is_read_without_its_code(tmp_path: Path) -> None:
    """The file as docs/records.md says, made by hand."""
    connection = sqlite3.connect(tmp_path / "realm.sqlite")
    connection.executescript("""
      CREATE TABLE partitions (id INTEGER PRIMARY KEY, topic TEXT, number INTEGER);
      CREATE TABLE batches (partition INTEGER, first INTEGER, count INTEGER, data BLOB);
      INSERT INTO partitions VALUES (1, 'um.realm', 0), (2, 'um.journal', 0), (3, 'um.node.q', 0);
    """)
    entry = b'{"node":"q","durable":"queue","operation":"%s","runs":[%s]}'
    journal = b'{"entries":[%s,%s]}' % (
        entry % (b"acknowledge", b"[4,5,1,4]"), entry % (b"return", b"[6,6,3,6]"))  # fmt: skip
    body = write_body(Said(1, 2, 3, 4), 0)
    topics: list[tuple[int, int, list[tuple[bytes, bytes | None]]]] = [
        (1, 0, [(b'["node","q"]', b'{"topic":"um.node.q"}'), (b'["durable","q","queue"]', b'{"start":4}')]),
        (2, 0, [(b"r", journal)]),
        (3, 4, [(b"k", body), (b"k", b"by somebody else"), (b"k", None), (b"k", body)]),
    ]
    for partition, first, records in topics:
        connection.execute("INSERT INTO batches VALUES (?, ?, ?, ?)", (partition, first, len(records), _blob(records)))
    connection.commit()
    connection.close()
    kept = read_sqlite(tmp_path, "um")
    said = Said(1, 2, 3, 4)
    assert kept.events == {"q": {4: said, 5: None, 7: said}}
    assert kept.starts == {QUEUE: 4}
    assert kept.terminal == {QUEUE: {4, 5}}
    assert kept.left() == {QUEUE: [7]}


def _blob(records: list[tuple[bytes, bytes | None]]) -> bytes:
    columns = [key for key, _ in records] + [value for _, value in records]
    lengths = [0xFFFFFFFF if item is None else len(item) for item in columns]
    return struct.pack(f"<{len(lengths)}I", *lengths) + b"".join(item for item in columns if item is not None)
