"""What one durable or queue has for its links, and how it is read: its state, its place in the store's window, what is
read again because it left that window, and what each link must not get.

Two parts build on it and decide which link gets which event: `next_events.py` for links that take all, and
`selecting_consumer.py` for links with selections.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from native_backend.dispatch.context import RealmContext
from native_backend.events.batch import BatchBuilder
from native_backend.events.chunk import Chunk
from native_backend.events.range_chunk import chunk_of
from native_backend.events.window import Cursor, StoreWindow
from native_backend.log.port import Failure, LogError, Records
from native_backend.nodes.durable import Durable
from native_backend.nodes.node import Node
from native_backend.state.ack_state import AckState
from native_backend.state.consumer import Consumer
from native_backend.state.excluded import Excluded
from native_backend.state.intervals import Intervals, dense_runs


class Backlog(ABC):
    """`fresh` is what is returned and no link ever had: a link with a selection passed it over."""

    def __init__(
        self, context: RealmContext, node: Node, durable: Durable, state: AckState, redelivered_below: int
    ) -> None:
        self.context = context
        self.node = node
        self.durable = durable
        self.state = state
        self.redelivered_below = redelivered_below  # EIDs below may have been given by a process that was killed
        self.links: list[Consumer] = []
        self.moving = False  # its place is being moved
        self.window: StoreWindow | None = None
        self.cursor = Cursor(state.position)
        self.fresh = Intervals()
        self._suspended = False  # its store has become shorter, and the journal does not say so yet
        self._fetching = False
        self._retry_s = 0.0  # no fetch before
        self._excluded: dict[object, Excluded] = {}  # by `Consumer.link`

    @property
    def paused(self) -> bool:
        """Nothing is given now."""
        return self.moving or self._suspended

    @property
    def current(self) -> Node:
        """Properties change while it is open."""
        return self.context.metadata.stores.get(self.node.store, self.node)

    def excluded(self, link: Consumer) -> Excluded | None:
        """What that link wanted to go elsewhere."""
        return self._excluded.get(link.link)

    def excludes(self, link: Consumer, eid: int) -> bool:
        excluded = self._excluded.get(link.link)
        return excluded is not None and eid in excluded.eids

    @abstractmethod
    def wake(self, link: Consumer) -> None:
        """Something is kept for it."""

    @abstractmethod
    def expire(self, eids: list[int], chunk: Chunk) -> None:
        """Their time is over."""

    @abstractmethod
    def filter_out(self, eids: list[int], chunk: Chunk) -> None:
        """They are not what this durable is for."""

    @abstractmethod
    def read_failed(self, failure: Failure) -> None:
        """A read failed."""

    def count_repeated(self, gathering: BatchBuilder) -> None:
        """All that is gathered so far was returned. What of it is fresh is given for the first time."""
        eids = gathering.eids
        gathering.repeated = len(eids)
        if self.fresh and eids:
            before = [eid not in self.fresh for eid in eids]
            gathering.before = None if all(before) else before
            for first, last in dense_runs(sorted(eids)):
                self.fresh.discard(first, last)

    # -- reading again

    def chunk_in_memory(self, eid: int) -> Chunk | None:
        fetched = self.context.windows.again(self)
        if fetched is not None and fetched.start <= eid < fetched.end:
            return fetched
        return self.window.held(eid) if self.window is not None else None

    def fetch(self, start: int) -> bool:
        """Read again from `start`; True when that, or another such read, is under way."""
        if self._fetching:
            return True
        if self.window is None or self.context.clock.monotonic_s() < self._retry_s:
            return False
        self._fetching = True
        log, node, count = self.context.log, self.node, self.window.count
        deadline_s = self.context.limits.control_deadline_s

        def read() -> Records:
            return log.control.read_range(node.topic, node.partition, start, count, deadline_s)

        def done(records: Records | LogError) -> None:
            self._fetching = False
            if isinstance(records, LogError):
                self._retry_s = self.context.clock.monotonic_s() + self.context.limits.retry_interval_s
                self.read_failed(records.failure)
            elif records.next <= start:  # it had been there
                self.read_failed(Failure("retention", f"{node.topic} ends below {start}"))
            elif self.window is not None:
                ttl_ms, windows = self.current.properties.ttl_ms, self.context.windows
                windows.keep(self, chunk_of(start, records, ttl_ms, windows.frame))

        self.context.worker.submit(read, done)
        return True
