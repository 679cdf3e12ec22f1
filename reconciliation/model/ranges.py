"""Which records a reconciliation reads: the topics of a realm by kind, and one offset range for each partition."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from hashlib import blake2b
from typing import Literal

Kind = Literal["realm", "tables", "state", "outcomes", "journal", "lease", "commands", "events"]
SINGLE: tuple[Kind, ...] = ("realm", "tables", "state", "outcomes", "journal", "lease", "commands")
"""Kinds that are one topic each, `PREFIX.KIND`; the other topics hold events: those of the nodes in the metadata."""
KINDS: tuple[Kind, ...] = (*SINGLE, "events")
REQUIRED: tuple[Kind, ...] = ("realm", "tables", "state", "outcomes", "journal")
"""Without one of these something cannot be judged."""

GONE = "the topic is gone: restore it from a backup"
NO_END = 1 << 62
EID_BITS, SEQ_BITS = 12, 14
EID_SIZE, SEQ_SIZE = 1 << EID_BITS, 1 << SEQ_BITS
"""So many numbers that follow each other are a block. The last one of each store is looked at event by event; of runs
there are fewer."""
TORN = "these records cannot be decoded"
"""Known only to who reads the records: the ends of a topic do not tell."""


@dataclass(frozen=True, slots=True, order=True)
class Range:
    """Offsets `first <= offset < end` of one partition; below `first` nothing is kept any more."""

    topic: str
    partition: int
    first: int
    end: int


@dataclass(frozen=True, slots=True)
class GroupPosition:
    """A stored group offset, with its metadata."""

    group: str
    topic: str
    partition: int
    position: int
    metadata: str


@dataclass(frozen=True, slots=True, order=True)
class Unread:
    """A topic, one partition of it, or offsets `first <= offset < end` of that, which could not be read. `why` names
    what keeps it from being read, and what to do."""

    topic: str
    partition: int | None
    why: str
    first: int = 0
    end: int = 0

    @property
    def pending(self) -> bool:
        """Only so many offsets of a partition."""
        return self.end > self.first

    @property
    def words(self) -> str:
        place = self.topic if self.partition is None else f"{self.topic} partition {self.partition}"
        offsets = f", offsets {self.first:,} to {self.end - 1:,}" if self.end > self.first else ""
        return f"{place}{offsets}: {self.why}"


@dataclass(frozen=True, slots=True)
class Extent:
    """All that one reconciliation looks at.

    `topics` has the id (in hex) of each topic that exists, of those that are the realm's. `journal_before`: what the
    journal says below that offset was there before it was asked where the outcomes end. `growing`: more outcome records
    were stored while all this was asked; `journal_growing`: more of the journal was. `changed`: stores that were made
    or deleted meanwhile; `begun`: durables that were made, by node and name."""

    ranges: tuple[Range, ...]
    positions: tuple[GroupPosition, ...]
    topics: Mapping[str, str] = field(default_factory=dict)
    unread: tuple[Unread, ...] = ()
    journal_before: int = 0
    growing: bool = False
    changed: frozenset[int] = frozenset()
    begun: frozenset[tuple[str, str]] = frozenset()
    journal_growing: bool = False

    def range_of(self, topic: str, partition: int = 0) -> Range | None:
        """None for a partition that is not read."""
        return next((span for span in self.ranges if (span.topic, span.partition) == (topic, partition)), None)

    def first_kept(self, topic: str, partition: int = 0) -> int:
        """The first kept offset of a partition; 0 for one that is not read."""
        span = self.range_of(topic, partition)
        return span.first if span is not None else 0

    def unread_of(self, topic: str, partition: int = 0) -> Unread | None:
        """What of this partition could not be read; None: all of it could."""
        return next((gap for gap in self.unread if gap.topic == topic and gap.partition in (None, partition)), None)

    def hidden(self, topic: str, partition: int = 0) -> list[tuple[int, int]]:
        """The offsets of a partition that could not be read: `first <= offset < end`. What keeps back the end of a
        partition keeps back all that follows; records that cannot be decoded lie between others."""
        gaps = [gap for gap in self.unread if (gap.topic, gap.partition) == (topic, partition) and gap.pending]
        return sorted((gap.first, gap.end if gap.why == TORN else NO_END) for gap in gaps)

    @property
    def offsets(self) -> int:
        """How many offsets the ranges span: at least as many as there are records."""
        return sum(span.end - span.first for span in self.ranges)

    def only(self, prefix: str, kinds: Collection[Kind]) -> Extent:
        """What it says of topics of these kinds."""
        return replace(
            self,
            ranges=tuple(span for span in self.ranges if kind_of(prefix, span.topic) in kinds),
            positions=tuple(position for position in self.positions if kind_of(prefix, position.topic) in kinds),
            topics={topic: id_ for topic, id_ in self.topics.items() if kind_of(prefix, topic) in kinds},
            unread=tuple(gap for gap in self.unread if kind_of(prefix, gap.topic) in kinds),
        )

    def as_json(self) -> dict[str, object]:
        return {
            "ranges": [asdict(span) for span in self.ranges],
            "positions": [asdict(position) for position in self.positions],
            "topics": dict(sorted(self.topics.items())),
            "unread": [asdict(gap) for gap in self.unread],
        }


def kind_of(prefix: str, topic: str) -> Kind:
    """What a topic of the realm holds."""
    return next((kind for kind in SINGLE if topic == f"{prefix}.{kind}"), "events")


def name_of(extent: Extent) -> str:
    """A directory name that says the range: readable where it can be, a digest for the rest. A topic that was made
    again has another id: its records are others, though their offsets may be the same."""
    ranges = sorted(extent.ranges)
    content = [[asdict(span) for span in ranges], sorted(extent.topics.items())]
    digest = blake2b(json.dumps(content).encode(), digest_size=8).hexdigest()
    ends = {span.topic.rpartition(".")[2]: span for span in ranges if span.topic.endswith((".outcomes", ".journal"))}
    parts = [f"{kind}-{span.first}-{span.end}" for kind, span in sorted(ends.items())]
    return "_".join([*parts, digest])
