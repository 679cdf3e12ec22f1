"""Who owns the shard, as the records of `<prefix>.lease` tell it. The order of the log decides: every reader comes to
the same answer.

An owner takes term after term of one owner: `take` counts when it names the owner's last record before it, so that an
owner who answered in time keeps the shard. `ask` wants a sign of life, `hold` is one, `release` hands over at once.
Records: docs/records.md "Lease".
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import orjson

from native_backend.log.port import FORMAT, Failure, Log, LogError
from native_backend.nodes.metadata import OWN_TOPICS
from native_backend.nodes.words import HISTORY

VERSION = 1
UNSAID_MS = 5000  # the lease of an owner of a release that did not say how long it was
UNSAID_TOPICS: Final = frozenset(OWN_TOPICS) - {HISTORY}  # those of a release that did not say which it makes
_BATCH = 1000
What = Literal["ask", "take", "hold", "release"]


def lease_topic(prefix: str) -> str:
    return f"{prefix}.lease"


@dataclass(slots=True)
class LeaseRecords:
    """As of the records below `position`."""

    position: int = 0
    term: int = 0
    run: str = ""  # of the owner; empty when there never was one
    process: Mapping[str, Any] = field(default_factory=dict)
    lease_s: float = 0.0  # how long the owner may go unheard, as it says itself
    topics: Set[str] = frozenset(OWN_TOPICS)  # that the owner's release makes, without their prefix
    released: bool = False
    at: int = -1  # the owner's last record
    asked: int = -1  # the last question of another process
    records: int = 0  # read since `position` was 0

    def read(self, log: Log, prefix: str, deadline_s: float) -> None:
        """Read on to the end. Blocks; raises LogError."""
        topic = lease_topic(prefix)
        while True:
            try:
                records = log.control.read_range(topic, 0, self.position, _BATCH, deadline_s)
            except LogError as error:
                if error.failure.cause != "retention":
                    raise
                self._begin_at(log.control.bounds(topic, 0, deadline_s)[0])
                continue
            for offset, value in zip(records.offsets, records.values, strict=True):
                if value is not None:
                    self._record(offset, orjson.loads(value))
            more = records.next > self.position and bool(records.offsets)
            self.position = max(self.position, records.next)
            if not more:
                return

    @property
    def free(self) -> bool:
        """It has no owner, or the last owner released it."""
        return not self.run or self.released

    def _begin_at(self, first: int) -> None:
        """The owner trims below a record of his own: what is kept tells all."""
        self.position, self.term, self.run, self.released, self.at = first, 0, "", False, -1

    def _record(self, offset: int, record: dict[str, Any]) -> None:
        self.records += 1
        if record["v"] > VERSION:
            detail = f"the lease has records of version {record['v']}; this release knows {VERSION}"
            raise LogError(Failure("unexpected", detail, FORMAT))
        what, term, run = record["what"], record["term"], record["run"]
        if what == "ask":
            self.asked = offset
        elif not self.run or (what == "take" and term == self.term + 1 and record["after"] == self.at):
            self.term, self.run, self.process = term, run, record["process"]
            self.lease_s = record.get("lease_ms", UNSAID_MS) / 1000
            self.topics = frozenset(record.get("topics", UNSAID_TOPICS))
            self.released, self.at = what == "release", offset
        elif (term, run) == (self.term, self.run) and what != "take":  # a take again: the log stored it twice
            self.released, self.at = what == "release", offset


def encode_lease(
    what: What, records: LeaseRecords, run: str, process: Mapping[str, Any], at_us: int, lease_s: float
) -> bytes:
    """A record of `run`; `take` wants what comes after `records`, the others speak of its term."""
    term = records.term + (what == "take")
    record = {"v": VERSION, "what": what, "term": term, "run": run, "at": at_us, "after": records.at}
    return orjson.dumps({**record, "lease_ms": round(1000 * lease_s), "topics": [*OWN_TOPICS], "process": process})
