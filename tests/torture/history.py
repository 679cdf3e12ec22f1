"""What the peers did and saw, in the order in which they did and saw it: one row each, kept as lines of JSON.

A row is `[kind, milliseconds, ...]`; `link` numbers one attach of one peer, `number` is what a publisher has to say,
`index` one attempt to say it on that link (so (link, index) is written into the message and never comes twice);
`store` and `eid` are what a delivery's tag names:

    link        link, "publish"|"subscribe"|"coordinate", node, durable name or "", peer, kind of node
    end         link, why
    send        link, index, number, transaction or 0, group or "", priority
    told        link, index, outcome, condition or ""
    received    link, store, eid, peer, number, sending link, index, delivery-count, 1 if it may have been given before
    damaged     link, store, eid                            what came was sent by no one
    settle      link, store, eid, outcome, transaction or 0     what the consumer said
    settled     link, store, eid, outcome                       and what it was answered
    discharge   transaction, 1 to commit, 0 to roll back
    discharged  transaction, outcome
    nemesis     what, deliveries in flight
    stalled     milliseconds for which the peers' own thread did not run, up to now
"""

from __future__ import annotations

import json
import struct
import time
import zlib
from pathlib import Path
from typing import Any, NamedTuple

Row = tuple[Any, ...]
Event = tuple[int, int]  # store, EID
_BODY = struct.Struct(">4sIQIII")  # magic, peer, number, link, index, crc of these
_MAGIC = b"TRT1"


class Said(NamedTuple):
    """What a message says of itself."""

    peer: int
    number: int
    link: int
    nth: int  # the index


def write_body(body: Said, size: int) -> bytes:
    head = struct.pack(">4sIQII", _MAGIC, *body)
    return b"." * max(0, size - _BODY.size) + head + struct.pack(">I", zlib.crc32(head))


def read_body(message: bytes) -> Said | None:
    """From the end of a message; None when none of ours wrote it."""
    if len(message) < _BODY.size:
        return None
    tail = message[-_BODY.size :]
    magic, peer, number, link, index, crc = _BODY.unpack(tail)
    return Said(peer, number, link, index) if magic == _MAGIC and zlib.crc32(tail[:-4]) == crc else None


class History:
    """Rows in memory; appended to by one thread, and by the nemesis (a list's append is atomic)."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self._begin_s = time.monotonic()
        self.begin_us = time.time_ns() // 1000

    def note(self, kind: str, *fields: Any) -> None:
        self.rows.append((kind, round((time.monotonic() - self._begin_s) * 1000), *fields))

    def save(self, path: Path) -> None:
        with path.open("w") as out:
            out.writelines(json.dumps(row, separators=(",", ":")) + "\n" for row in self.rows)


def load(path: Path) -> list[Row]:
    with path.open() as lines:
        return [tuple(json.loads(line)) for line in lines]
