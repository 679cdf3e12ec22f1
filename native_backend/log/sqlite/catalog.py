"""What one connection knows of topics and partitions, and how it notices that another connection has changed them.

`PRAGMA data_version` moves when any other connection (of this process or another) has committed: a few microseconds,
instead of asking the tables.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

PARTITIONS = """
SELECT p.topic, p.number, p.id, p.first, p.next, t.compacted FROM partitions p JOIN topics t ON t.name = p.topic
"""


@dataclass(slots=True)
class Partition:
    """One partition; offsets `first <= offset < next` may hold records."""

    id: int
    first: int
    next: int
    compacted: bool


class Catalog:
    """Partitions by (topic, number) and by id, and who claimed which shard, as of the last `refresh`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._version = -1
        self.named: dict[tuple[str, int], Partition] = {}
        self.known: dict[int, Partition] = {}
        self.claims: dict[str, bytes] = {}

    def refresh(self) -> bool:
        """Read again what others have changed; True when they had changed anything."""
        (version,) = self._connection.execute("PRAGMA data_version").fetchone()
        if version == self._version:
            return False
        self.named = {
            (topic, number): Partition(id_, first, end, bool(compacted))
            for topic, number, id_, first, end, compacted in self._connection.execute(PARTITIONS)
        }
        self.known = {partition.id: partition for partition in self.named.values()}
        self.claims = dict(self._connection.execute("SELECT shard, holder FROM claims").fetchall())
        self._version = version
        return True

    def forget(self) -> None:
        """Trust nothing: the next `refresh` reads."""
        self._version = -1
