"""Where a subscription of a channel begins: at an event, at a time, with the oldest event that is kept, or with what
comes from now on.

Times are milliseconds since 1970, of storing. What is below the oldest kept event begins with that, what is beyond the
end at the end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from native_backend.log.port import Log
from native_backend.log.time_search import first_at
from native_backend.nodes.node import Node


@dataclass(frozen=True, slots=True)
class StartPosition:
    """`value`: an EID, or a time."""

    kind: Literal["earliest", "latest", "eid", "time"]
    value: int = 0


LATEST: Final = StartPosition("latest")
EARLIEST: Final = StartPosition("earliest")


def start_of(start: StartPosition, log: Log, node: Node, bounds: tuple[int, int], deadline_s: float) -> int:
    """The EID from which it gives events, in a store with these bounds. Blocks; raises LogError."""
    first, end = bounds
    if start.kind == "earliest":
        return first
    if start.kind == "latest":
        return end
    if start.kind == "eid":
        return min(max(start.value, first), end)
    return first_at(log, node.topic, node.partition, bounds, start.value, deadline_s)
