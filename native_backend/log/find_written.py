"""Where the records of a transaction lie whose answer was lost: known to be stored, looked for from the end of their
topics backwards.

Blocks; raises LogError.
"""

from __future__ import annotations

from collections.abc import Sequence

from native_backend.log.port import Log, Write

_STEP = 1_000  # records looked at first; doubled until all are found


def find_written(log: Log, writes: Sequence[Write], deadline_s: float) -> list[int]:
    """The offset of each write; -1 where it is not kept any more."""
    offsets = [-1] * len(writes)
    places: dict[tuple[str, int], dict[tuple[bytes | None, bytes | None], list[int]]] = {}
    for index, write in enumerate(writes):
        wanted = places.setdefault((write.topic, write.partition), {})
        wanted.setdefault((write.key, write.value), []).append(index)
    for (topic, partition), wanted in places.items():
        _look_back(log, topic, partition, wanted, offsets, deadline_s)
    return offsets


def _look_back(
    log: Log,
    topic: str,
    partition: int,
    wanted: dict[tuple[bytes | None, bytes | None], list[int]],
    offsets: list[int],
    deadline_s: float,
) -> None:
    """Fill in `offsets`; of equal records the newest ones are taken."""
    first, end = log.control.bounds(topic, partition, deadline_s)
    step = _STEP
    while wanted and end > first:
        start = max(first, end - step)
        for offset, key, value in reversed(_range(log, topic, partition, start, end, deadline_s)):
            indexes = wanted.get((key, value))
            if indexes:
                offsets[indexes.pop()] = offset
                if not indexes:
                    del wanted[key, value]
        end, step = start, step * 2


def _range(
    log: Log, topic: str, partition: int, start: int, end: int, deadline_s: float
) -> list[tuple[int, bytes | None, bytes | None]]:
    rows: list[tuple[int, bytes | None, bytes | None]] = []
    while start < end:
        records = log.control.read_range(topic, partition, start, _STEP, deadline_s)
        columns = zip(records.offsets, records.keys, records.values, strict=True)
        rows += [row for row in columns if row[0] < end]
        if records.next <= start:
            break
        start = records.next
    return rows
