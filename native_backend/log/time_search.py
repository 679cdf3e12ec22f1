"""Where in a partition something begins that holds for all later records, found by halving: some twenty reads of one
record.

Times are milliseconds since 1970, of storing. Blocks; raises LogError.
"""

from __future__ import annotations

from collections.abc import Callable

from native_backend.log.port import Log, Records


def first_at(log: Log, topic: str, partition: int, bounds: tuple[int, int], at_ms: int, deadline_s: float) -> int:
    """The offset of the first record within `bounds` that was stored then or later; the end where there is none."""
    return first_where(log, topic, partition, bounds, lambda records: records.timestamps_ms[0] >= at_ms, deadline_s)


def first_where(
    log: Log,
    topic: str,
    partition: int,
    bounds: tuple[int, int],
    holds: Callable[[Records], bool],
    deadline_s: float,
) -> int:
    """The offset of the first record within `bounds` of which it holds; the end where there is none."""
    low, high = bounds
    while low < high:
        middle = (low + high) // 2
        records = log.control.read_range(topic, partition, middle, 1, deadline_s)
        if not records.offsets or records.offsets[0] >= high or holds(records):
            high = middle
        else:
            low = records.offsets[0] + 1
    return low
