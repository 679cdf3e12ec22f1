"""Which records a reconciliation reads: the topics of a realm by kind, and one offset range for each partition.

May import: the standard library only.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from hashlib import blake2b
from typing import Literal

Kind = Literal["realm", "tables", "state", "outcomes", "journal", "events"]
SINGLE: tuple[Kind, ...] = ("realm", "tables", "state", "outcomes", "journal")
"""Kinds that are one topic each, `PREFIX.KIND`; all other topics of a realm hold events."""


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


@dataclass(frozen=True, slots=True)
class Extent:
    """All that one reconciliation looks at."""

    ranges: tuple[Range, ...]
    positions: tuple[GroupPosition, ...]

    def first_kept(self, topic: str, partition: int = 0) -> int:
        """The first kept offset of a partition; 0 for one that is not read."""
        return next((one.first for one in self.ranges if (one.topic, one.partition) == (topic, partition)), 0)

    @property
    def offsets(self) -> int:
        """How many offsets the ranges span: at least as many as there are records."""
        return sum(one.end - one.first for one in self.ranges)

    def as_json(self) -> dict[str, object]:
        return {"ranges": [asdict(one) for one in self.ranges], "positions": [asdict(one) for one in self.positions]}


def kind_of(prefix: str, topic: str) -> Kind | None:
    """What a topic holds; None for a topic that is not the realm's."""
    for kind in SINGLE:
        if topic == f"{prefix}.{kind}":
            return kind
    return "events" if topic.startswith((f"{prefix}.node.", f"{prefix}.named.")) else None


def name_of(extent: Extent) -> str:
    """A directory name that says the range: readable where it can be, a digest for the rest."""
    ranges = sorted(extent.ranges)
    digest = blake2b(json.dumps([asdict(one) for one in ranges]).encode(), digest_size=8).hexdigest()
    ends = {one.topic.rpartition(".")[2]: one for one in ranges if one.topic.endswith((".outcomes", ".journal"))}
    parts = [f"{kind}-{one.first}-{one.end}" for kind, one in sorted(ends.items())]
    return "_".join([*parts, digest])
