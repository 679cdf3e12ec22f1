"""What a realm counts, for operators: read between two turns, a part at a time, at no cost while no page asks.

Seconds, octets, EIDs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

from native_backend.dispatch.context import RealmContext
from native_backend.events.message_counts import MessageCounts
from native_backend.log.retry import Retries
from native_backend.nodes.durable import Durable
from native_backend.nodes.node import Node
from native_backend.publish.capacity import CountedStore
from native_backend.publish.publisher import Publisher
from native_backend.shard.shard import Shard
from native_backend.state.durations import Durations
from native_backend.state.troubles import Alarms, Trouble

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class DurableMetrics:
    """One durable, or a queue's own state, in one of the node's stores. `counts`: of messages, None while its store is
    being counted; `hole` counts EIDs, gaps included."""

    node: str
    durable: str
    partition: int
    links: int
    low: int
    counts: MessageCounts | None
    hole: int  # not settled, at the bottom, with settled ones above
    ranges: int  # of settled ones above the mark: what the state costs
    oldest_s: float | None = None  # the age of its oldest message; 0: there is none; None: its store is being counted
    position: int = 0  # below it every event was given at least once
    opened: bool = False  # something was consumed from it in this process


@dataclass(frozen=True, slots=True)
class NodeFigures:
    """A store of a node: its messages, None while they are being counted; octets where it has a capacity, as far as
    they are counted. 0: no such bound."""

    node: str
    partition: int
    stored: int | None
    size_bytes: int | None
    events_max: int
    bytes_max: int
    temporary: bool
    oldest_s: float | None = None  # as of a durable


@dataclass(frozen=True, slots=True)
class LeaseFigures:
    """`looked_s`: since the last look that found this process to be the owner; with more than `lapses_s` it gives out
    no events."""

    held: bool
    term: int
    looked_s: float
    lapses_s: float


class RealmMetrics:
    """Of one realm in one process."""

    def __init__(self, context: RealmContext, shard: Shard, publisher: Publisher) -> None:
        self._context, self._shard, self._publisher = context, shard, publisher
        self.depths = shard.depths

    @property
    def lease_held(self) -> bool:
        return self._context.lease.held

    @property
    def lease(self) -> LeaseFigures:
        lease, limits = self._context.lease, self._context.limits
        return LeaseFigures(lease.held, lease.term, lease.unanswered_s, limits.lease_s)

    @property
    def journal_seconds(self) -> Durations:
        """Of stored transactions, from their beginning."""
        return self._context.journal.seconds

    @property
    def journal_records(self) -> int:
        return self._context.journal.records

    @property
    def publish_seconds(self) -> Durations:
        """Of stored runs of events, from their hand-over to the log."""
        return self._publisher.seconds

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
        return self._context.worker.pending

    @property
    def retries(self) -> Retries:
        return self._context.worker.retries

    @property
    def alarms(self) -> Alarms:
        return self._context.alarms

    @property
    def dead_letters(self) -> Counter[tuple[str, str]]:
        """By the node that they were in, and by cause."""
        return self._context.dead_letters.counts

    @property
    def troubles(self) -> list[Trouble]:
        """Those that there are now, the longest first."""
        return self._context.troubles.present()

    @property
    def held_bytes(self) -> int:
        """Raw events in memory."""
        return self._context.windows.held_bytes

    @property
    def held_bytes_max(self) -> int:
        return self._context.limits.feed_bytes

    def durables(self) -> Iterator[DurableMetrics | None]:
        """All of them, in the order in which they are wanted: temporary ones last, those at work in this process first.
        None: a step on the way to the next."""

        def rank(pair: tuple[Node, Durable]) -> tuple[bool, bool]:
            node, durable = pair
            return node.temporary, self._shard.opened(node, durable.name) is None

        for node, durable in sorted(self.depths.durables(), key=rank):
            yield from self.durable(node, durable)

    def durable(self, node: Node, durable: Durable) -> Iterator[DurableMetrics | None]:
        """In one of the node's stores, `node`. None: a step on the way."""
        tally = yield from _last(self.depths.steps(node, durable))
        oldest_ms = yield from _last(self.depths.oldest(node, durable))
        dispatch, state = self._shard.opened(node, durable.name), self.depths.state(durable)
        above = state.acked.at_or_above(state.low)
        yield DurableMetrics(
            node=node.name,
            durable=durable.name,
            partition=node.partition,
            links=len(dispatch.links) if dispatch is not None else 0,
            low=state.low,
            counts=tally.counts if tally is not None else None,
            hole=above[0] - state.low if above is not None else 0,
            ranges=len(state.acked),
            oldest_s=self._age_s(oldest_ms),
            position=state.position,
            opened=dispatch is not None,
        )

    def links(self, node: Node, durable: Durable) -> int:
        """On a durable, in the store `node`."""
        dispatch = self._shard.opened(node, durable.name)
        return len(dispatch.links) if dispatch is not None else 0

    def known_nodes(self) -> list[Node]:
        """As they are now, in no order."""
        return [*self._context.metadata.nodes.values()]

    def node_names(self, count_max: int) -> list[str]:
        """Those of so many nodes; none that peers have made for themselves."""
        names = (node.name for node in self._context.metadata.nodes.values() if not node.temporary)
        return [*islice(names, count_max)]

    def nodes(self) -> Iterator[NodeFigures | None]:
        """Every store of every node, those with a capacity first, temporary ones last. None: a step on the way to the
        next."""
        stores = [*self._context.metadata.stores.values()]
        for node in sorted(stores, key=lambda node: (node.temporary, not _has_capacity(node))):
            yield from self.store(node)

    def store(self, node: Node) -> Iterator[NodeFigures | None]:
        """One store of a node. None: a step on the way."""
        stored = yield from _last(self.depths.stored(node))
        oldest_ms = yield from _last(self.depths.oldest(node))
        counted_store = self._context.counted.get(node.store)
        yield NodeFigures(
            node=node.name,
            partition=node.partition,
            stored=stored,
            size_bytes=counted_store.size_bytes if isinstance(counted_store, CountedStore) else None,
            events_max=node.properties.capacity_events or 0,
            bytes_max=node.properties.capacity_bytes or 0,
            temporary=node.temporary,
            oldest_s=self._age_s(oldest_ms),
        )

    def _age_s(self, stored_ms: int | None) -> float | None:
        return max(0.0, self._context.clock.epoch_us() / 1e6 - stored_ms / 1e3) if stored_ms else stored_ms


def _last(steps: Iterator[T | None]) -> Generator[None, None, T | None]:
    """Yields None for each step; returns what they come to, None where that is not known."""
    last = None
    for last in steps:
        if last is None:
            yield None
    return last


def known_sum(numbers: Iterable[int | None]) -> int | None:
    """None where one is not known."""
    terms = [*numbers]
    return sum(number for number in terms if number is not None) if None not in terms else None


def oldest(ages: Iterable[float | None]) -> float | None:
    """None where one is not known, or where there is none."""
    known = [*ages]
    return max((age for age in known if age is not None), default=None) if None not in known else None


def _has_capacity(node: Node) -> bool:
    return bool(node.properties.capacity_events or node.properties.capacity_bytes)
