"""Looking at acknowledgement states from outside the process that owns them: snapshots and journal, read only.

What is with a consumer and what waits to be given again look alike from here: given, and not settled. Blocks; raises
LogError. May import: the standard library, `native_backend` below it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from native_backend.acknowledgement import Acknowledgement
from native_backend.durables import Durable
from native_backend.journal import journal_topic
from native_backend.limits import RealmLimits
from native_backend.log import Log, LogError
from native_backend.metadata import Metadata
from native_backend.nodes import Node
from native_backend.recovery import States, recover

_BATCH = 500


@dataclass(frozen=True, slots=True)
class Observed:
    """One durable, or a queue's own state, as of a moment ago. Counts are EIDs, gaps included."""

    node: Node
    durable: Durable
    state: Acknowledgement
    first: int
    end: int

    @property
    def unsettled(self) -> int:
        """Given to a consumer and not settled."""
        return self.state.unsettled

    @property
    def waiting(self) -> int:
        """Not given yet."""
        return max(0, self.end - self.state.position)


@dataclass(frozen=True, slots=True)
class Event:
    """One event that is not settled. `attempts` that failed; `given` at least once."""

    eid: int
    at_ms: int
    key: bytes
    value: bytes
    attempts: int
    given: bool


def observe(log: Log, prefix: str, metadata: Metadata, node: Node | None = None) -> list[Observed]:
    """The durables of a node, or of all nodes, by node, name and partition."""
    states = _states(log, prefix, metadata)
    found = []
    for of, durable in metadata.each_durable():
        if node is not None and of.name != node.name:
            continue
        recovered = states.get((durable.store, durable.name))
        state = recovered.state if recovered is not None else Acknowledgement(durable.start)
        found.append(Observed(of, durable, state, *log.bounds(of.topic, of.partition)))
    return sorted(found, key=lambda one: (one.node.name, one.durable.name, one.node.partition))


def unsettled_events(log: Log, observed: Observed, start: int, count: int) -> Iterator[Event]:
    """Up to `count` events that are not settled, from EID `start` on."""
    state, node = observed.state, observed.node
    low = max(start, state.low, observed.first)
    for first, last in state.acked.holes(low, observed.end):
        at = first
        while at <= last and count > 0:
            records = log.read_range(node.topic, node.partition, at, min(_BATCH, last - at + 1))
            columns = zip(records.offsets, records.timestamps_ms, records.keys, records.values, strict=True)
            for eid, at_ms, key, value in columns:
                if eid > last or count <= 0:
                    break
                if value is not None:
                    count -= 1
                    given = eid < state.position
                    yield Event(eid, at_ms, key or b"", value, state.failed.get(eid, 0), given)
            at = max(records.next, at + 1)
        if count <= 0:
            return


def _states(log: Log, prefix: str, metadata: Metadata) -> States:
    """Empty for a realm that nobody has opened."""
    try:
        end = log.bounds(journal_topic(prefix), 0)[1]
        return recover(log, prefix, metadata, end, RealmLimits().recovery_records).states
    except LogError as error:
        if error.failure.cause != "not-found":
            raise
        return {}
