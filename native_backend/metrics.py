"""What a realm counts, for whoever watches it: read between two turns, a part at a time, and no cost while nobody does.

Seconds, octets, EIDs. May import: the standard library, `native_backend` below it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from native_backend.capacity import Bounded
from native_backend.dispatch import Dispatch
from native_backend.durations import Durations
from native_backend.lags import Lags
from native_backend.publisher import Publisher
from native_backend.retrying import Retries
from native_backend.services import Services
from native_backend.shard import Shard


@dataclass(frozen=True, slots=True)
class DurableFigures:
    """One durable, or a queue's own state, in one of the node's stores. EIDs count, gaps included."""

    node: str
    durable: str
    partition: int
    links: int
    low: int
    unsettled: int  # given and not settled, or to be given again
    waiting: int | None  # not given yet; None: not looked for
    hole: int  # not settled, at the bottom, with settled ones above
    ranges: int  # of settled ones above the mark: what the state costs


@dataclass(frozen=True, slots=True)
class CapacityFigures:
    """A store of a node with a capacity, as far as it is counted; 0: no such bound."""

    node: str
    partition: int
    events: int
    size_bytes: int
    events_max: int
    bytes_max: int


class Figures:
    """Of one realm in one process."""

    def __init__(self, services: Services, shard: Shard, publisher: Publisher) -> None:
        self._services, self._shard, self._publisher = services, shard, publisher
        self._lags = Lags(services)

    @property
    def lease_held(self) -> bool:
        return self._services.lease.held

    @property
    def journal_seconds(self) -> Durations:
        """Of stored transactions, from their beginning."""
        return self._services.journal.seconds

    @property
    def journal_records(self) -> int:
        return self._services.journal.records

    @property
    def evidence_seconds(self) -> Durations:
        """Of stored evidence records, from their hand-over to the log."""
        return self._publisher.evidence.seconds

    @property
    def evidence_failed(self) -> int:
        return self._publisher.evidence.failed

    @property
    def evidence_pending(self) -> int:
        return self._publisher.evidence.pending

    @property
    def control_pending(self) -> int:
        return self._services.control.pending

    @property
    def retries(self) -> Retries:
        return self._services.control.retries

    @property
    def alarms(self) -> Counter[str]:
        return self._services.alarms

    @property
    def held_bytes(self) -> int:
        """Raw events in memory."""
        return self._services.feeds.held_bytes

    @property
    def held_bytes_max(self) -> int:
        return self._services.limits.feed_bytes

    def durables(self) -> Iterator[DurableFigures | None]:
        """Those at work in this process. None: a step on the way to the next."""
        dispatches = self._shard.at_work()
        self._lags.ask(dispatch.node for dispatch in dispatches)
        for dispatch in dispatches:
            yield from self._durable(dispatch)

    def _durable(self, dispatch: Dispatch) -> Iterator[DurableFigures | None]:
        state, node = dispatch.state, dispatch.node
        settled = 0
        for count in state.acked.counting():
            if count is None:
                yield None
            else:
                settled = count
        above = state.acked.at_or_above(state.low)
        end = self._lags.ends.get(node.store)
        yield DurableFigures(
            node=node.name,
            durable=dispatch.durable.name,
            partition=node.partition,
            links=len(dispatch.links),
            low=state.low,
            unsettled=max(0, state.position - state.low - settled),
            waiting=0 if dispatch.caught_up else None if end is None else max(0, end - state.position),
            hole=above[0] - state.low if above is not None else 0,
            ranges=len(state.acked),
        )

    def capacities(self) -> Iterator[CapacityFigures]:
        """Those of the nodes with a capacity that were published to in this run."""
        for bounded in [*self._services.counted.values()]:
            if isinstance(bounded, Bounded) and bounded.occupancy is not None:
                properties = bounded.node.properties
                yield CapacityFigures(
                    node=bounded.node.name,
                    partition=bounded.node.partition,
                    events=bounded.occupancy.count,
                    size_bytes=bounded.occupancy.size_bytes,
                    events_max=properties.capacity_events or 0,
                    bytes_max=properties.capacity_bytes or 0,
                )
