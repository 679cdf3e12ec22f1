"""Where a subscription of a channel begins: at an event, at a time, with the oldest event that is kept, or with what
comes from now on.

Times are milliseconds since 1970, of storing. What is below the oldest kept event begins with that, what is beyond the
end at the end. May import: the standard library, `native_backend.log`, `native_backend.nodes`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from native_backend.log import Log
from native_backend.nodes import Node


@dataclass(frozen=True, slots=True)
class Start:
    """`value`: an EID, or a time."""

    kind: Literal["earliest", "latest", "eid", "time"]
    value: int = 0


LATEST: Final = Start("latest")
EARLIEST: Final = Start("earliest")


def place_of(start: Start, log: Log, node: Node, bounds: tuple[int, int], deadline_s: float) -> int:
    """The EID from which it gives events, in a store with these bounds. Blocks; raises LogError."""
    first, end = bounds
    if start.kind == "earliest":
        return first
    if start.kind == "latest":
        return end
    if start.kind == "eid":
        return min(max(start.value, first), end)
    return first_at(log, node, bounds, start.value, deadline_s)


def first_at(log: Log, node: Node, bounds: tuple[int, int], at_ms: int, deadline_s: float) -> int:
    """The first EID of an event stored then or later, by halving. Blocks; raises LogError."""
    low, high = bounds
    while low < high:
        middle = (low + high) // 2
        records = log.read_range(node.topic, node.partition, middle, 1, deadline_s)
        if not records.offsets or records.offsets[0] >= high or records.timestamps_ms[0] >= at_ms:
            high = middle
        else:
            low = records.offsets[0] + 1
    return low
