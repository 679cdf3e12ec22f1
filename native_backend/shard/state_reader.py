"""Looking at acknowledgement states from outside the process that owns them: snapshots and journal, read only.

What is with a consumer and what waits to be given again look alike from here: given, and not settled. Blocks; raises
LogError.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from native_backend.clock import SystemClock
from native_backend.events.message_counts import MessageCounts, tally
from native_backend.events.store_events import StoreEvents
from native_backend.journal.journal import journal_topic
from native_backend.journal.recovery import States, recover
from native_backend.limits import RealmLimits
from native_backend.log.port import Log, LogError, if_there
from native_backend.nodes import broken_nodes
from native_backend.nodes.admin import CONTROL_S
from native_backend.nodes.broken_nodes import Broken
from native_backend.nodes.durable import Durable
from native_backend.nodes.metadata import Metadata
from native_backend.nodes.node import Node
from native_backend.shard.counts_report import Counted
from native_backend.state.ack_state import AckState

_BATCH = 500
_COUNTED = 2000  # records at a time
COUNTED_MAX = 2_000_000
"""EIDs that one count of what is stored reads, in all. A store that does not fit in stays without numbers."""


@dataclass(frozen=True, slots=True)
class StoredState:
    """One durable, or a queue's own state, as of a moment ago. Of a node that is `broken` there is its state only."""

    node: Node
    durable: Durable
    state: AckState
    first: int
    end: int
    broken: Broken | None = None

    @property
    def events_max(self) -> int:
        """EIDs, gaps included, that have not ended: at most so many events."""
        return self.state.unsettled + max(0, self.end - self.state.position)


@dataclass(frozen=True, slots=True)
class Event:
    """One event that is not settled. `attempts` that failed; `given` at least once."""

    eid: int
    at_ms: int
    key: bytes
    value: bytes
    attempts: int
    given: bool


def observe(log: Log, prefix: str, metadata: Metadata, node: Node | None = None) -> list[StoredState]:
    """The durables of a node, or of all nodes, by node, name and partition."""
    states = _states(log, prefix, metadata)
    observed = []
    durables = [pair for pair in metadata.each_durable() if node is None or pair[0].name == node.name]
    nodes = {part.name: part.part(0) for part, _ in durables}
    broken = broken_nodes.find(log, nodes.values(), CONTROL_S)[1]
    for part, durable in durables:
        recovered = states.get((durable.store, durable.name))
        state = recovered.state if recovered is not None else AckState(durable.start)
        wrong = broken.get(part.name)
        begin = end = state.position
        if wrong is None:
            begin, end = log.control.bounds(part.topic, part.partition)
        observed.append(StoredState(part, durable, state, begin, end, wrong))
    return sorted(observed, key=lambda row: (row.node.name, row.durable.name, row.node.partition))


def count_stored(log: Log, prefix: str, metadata: Metadata, nodes: Sequence[Node]) -> Counted:
    """The messages of these nodes, read from where something of them may be. For a realm that is not open: what a
    consumer had is to be given again."""
    now_ms, counted, left = SystemClock().epoch_us() // 1000, Counted(), COUNTED_MAX
    observed = [
        row for row in observe(log, prefix, metadata, nodes[0] if len(nodes) == 1 else None) if row.broken is None
    ]
    for node in nodes:
        for part in node.parts:
            its = [row for row in observed if row.node.store == part.store]
            if not its and node.kind == "queue":
                continue
            lows = [row.state.low for row in its] if node.kind == "queue" else [0]
            try:
                events = _events(log, part, min(lows), left, now_ms)
            except LogError as error:
                if error.failure.cause != "not-found":
                    raise
                continue
            if events is None:
                continue
            left -= events.counted_to - max(events.first, min(lows))
            for row in its:
                steps = [step for step in tally(events, row.state, (), 0, now_ms) if step is not None]
                counted[part.store, row.durable.name] = steps[0].counts
            if node.kind == "channel":
                kept = events.messages(now_ms)
                counted[part.store, ""] = MessageCounts(kept, kept, 0, 0)
    return counted


def _events(log: Log, node: Node, low: int, eids_max: int, now_ms: int) -> StoreEvents | None:
    """None where there are more."""
    events = StoreEvents(node)
    first, end = log.control.bounds(node.topic, node.partition)
    events.begin(first, low)
    if end - events.counted_to > eids_max:
        return None
    while events.counted_to < end:
        before = events.counted_to
        events.learn(log.control.read_range(node.topic, node.partition, before, _COUNTED), now_ms)
        if events.counted_to <= before:
            break
    return events


def unsettled_events(log: Log, observed: StoredState, start: int, count: int) -> Iterator[Event]:
    """Up to `count` events that are not settled, from EID `start` on."""
    state, node = observed.state, observed.node
    low = max(start, state.low, observed.first)
    for first, last in state.acked.holes(low, observed.end):
        at = first
        while at <= last and count > 0:
            records = log.control.read_range(node.topic, node.partition, at, min(_BATCH, last - at + 1))
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
    """Empty for a realm that was never opened."""
    with if_there():
        end = log.control.bounds(journal_topic(prefix), 0)[1]
        return recover(log, prefix, metadata, end, RealmLimits().recovery_records).states
    return {}
