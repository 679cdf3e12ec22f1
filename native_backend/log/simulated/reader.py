"""A position in one partition of the simulated disk."""

from __future__ import annotations

from collections.abc import Callable

from native_backend.log.port import Failure, Taken
from native_backend.log.simulated.disk import Partition


class SimulatedReader:
    """Reads up to the stable offset; `stalls` says whether this read finds nothing, whatever is there."""

    def __init__(
        self,
        partition: Partition | None,
        start: int,
        now_ms: Callable[[], int],
        stalls: Callable[[], bool],
        stamped: bool,
    ) -> None:
        self.times_ms: list[int] = []
        self._partition = partition
        self._position = start
        self._now_ms = now_ms
        self._stalls = stalls
        self._stamped = stamped

    @property
    def position(self) -> int:
        return self._position

    def read(self, count_max: int) -> Taken | Failure | None:
        partition = self._partition
        if partition is None or partition.gone:
            return Failure("not-found", "the topic is gone")
        if self._position < partition.first:
            return Failure("retention", f"the partition begins at {partition.first}")
        end = partition.stable_end(self._now_ms())
        if self._position > partition.end:
            return Failure("retention", f"the partition ends at {partition.end}")
        if self._position >= end or self._stalls():
            return None
        records = partition.records
        offsets: list[int] = []
        values: list[bytes] = []
        keys: list[bytes | None] = []
        self.times_ms = []
        for index in range(partition.index(self._position), len(records)):
            record = records[index]
            if record.offset >= end or len(offsets) == count_max:
                break
            self._position = record.offset + 1
            if record.value is not None:
                offsets.append(record.offset)
                values.append(record.value)
                keys.append(record.key)
                if self._stamped:
                    self.times_ms.append(record.at_ms)
        return (offsets, values, keys) if offsets else None

    def close(self) -> None:
        self._partition = None
