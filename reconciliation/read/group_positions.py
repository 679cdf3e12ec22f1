"""The group offsets of queues and durables: what they say, and whether the journal and the snapshots can have said so.
Classes A9 and A10. Source: docs/records.md "Group offset".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Set
from dataclasses import dataclass
from typing import Any
from zlib import crc32

from reconciliation.model.ranges import GroupPosition

_NUMBERS = {"realmgate1": 1, "realmgate2": 2}
"""How many numbers the metadata has between its version and its checksum."""
_DIGITS = re.compile("[0-9]{1,19}")
_SLACK = 2
"""Offsets that a log skips behind a record."""


@dataclass(frozen=True, slots=True)
class Projection:
    """`journal`: the journal offset it was computed at, `low` the mark. Both are None where the metadata is not the
    realm's. `intact`: the checksum is that of these numbers and of the offset."""

    offset: int
    journal: int | None
    low: int | None
    intact: bool

    @property
    def mark(self) -> int:
        """Below it all is claimed to have ended. Of a foreign commit nothing is known but the offset."""
        return self.low if self.intact and self.low is not None else self.offset


def projection_of(offset: int, metadata: str) -> Projection:
    version, *fields = metadata.rstrip("\0").split(";")
    count = _NUMBERS.get(version)
    if count is None or len(fields) != count + 1 or not all(_DIGITS.fullmatch(field) for field in fields[:-1]):
        return Projection(offset, None, None, False)
    numbers = [int(field) for field in fields[:-1]]
    checksum = crc32(";".join(map(str, (offset, *numbers))).encode())
    low = numbers[1] if count > 1 else offset
    return Projection(offset, numbers[0], low, fields[-1] == f"{checksum:08x}")


@dataclass(frozen=True, slots=True)
class Held:
    """What a group offset is held against: the durable's start, or the low of its newest snapshot, and the journal
    offset of that. `moved`: a command moved the durable, or its store became shorter."""

    node: str
    durable: str
    store: int
    low: int
    journal: int
    moved: bool


def position_findings(
    held: Iterable[tuple[Held, GroupPosition]], journal_end: int | None, unsure: Set[int] = frozenset()
) -> list[dict[str, Any]]:
    """`journal_end`: None where the journal could not be read to its end. `unsure`: stores that say nothing."""
    findings = []
    for against, position in held:
        wrong = _wrong(projection_of(position.position, position.metadata), against, journal_end)
        if wrong is not None and against.store not in unsure:
            code, why = wrong
            text = f"group {position.group}, offset {position.position}: {why}"
            findings.append({
                "class": code, "node": against.node, "durable": against.durable, "store": against.store, "count": 1,
                "detail": text,
            })  # fmt: skip
    return findings


def _wrong(mark: Projection, against: Held, journal_end: int | None) -> tuple[str, str] | None:
    if mark.journal is None or mark.low is None:
        code = "A10" if mark.offset < against.low and not against.moved else "A9"
        return code, "its metadata is not the realm's: another program has set it"
    if not mark.intact:
        back = mark.offset < mark.low
        why = f"its metadata ({mark.low} as of journal offset {mark.journal}) was written for another offset"
        return ("A10" if back else "A9"), why
    if journal_end is not None and mark.journal > journal_end + _SLACK:
        return "A9", f"computed at journal offset {mark.journal}, and the journal ends at {journal_end}"
    if against.moved:
        return None
    if mark.journal >= against.journal and mark.low < against.low:
        return (
            "A10",
            f"its mark is {mark.low}, and that of the older snapshot (journal offset {against.journal}) {against.low}",
        )
    if mark.journal < against.journal and mark.low > against.low:
        return (
            "A9",
            f"its mark is {mark.low}, and that of the newer snapshot (journal offset {against.journal}) {against.low}",
        )
    return None
