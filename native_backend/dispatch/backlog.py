"""What one durable or queue has for its links, and how it is read: its state, its place in the store's window, what is
read again because it left that window, and what each link must not get.

Two parts build on it and decide which link gets which event: `next_events.py` for links that take all, and
`selecting_consumer.py` for links with selections.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from native_backend.dispatch.context import RealmContext
from native_backend.events.batch import Gathering
from native_backend.events.chunk import Chunk
from native_backend.events.range_chunk import chunk_of
from native_backend.events.window import Cursor, StoreWindow
from native_backend.log.port import Failure, LogError, Records
from native_backend.nodes.durable import Durable
from native_backend.nodes.node import Node
from native_backend.state.ack_state import Acknowledgement
from native_backend.state.consumer import Link
from native_backend.state.excluded import Excluded
from native_backend.state.intervals import Intervals, dense_runs


class Backlog(ABC):
    """`fresh` is what is returned and no link ever had: a link with a selection passed it over."""

    def __init__(
        self, services: RealmContext, node: Node, durable: Durable, state: Acknowledgement, again_below: int
    ) -> None:
        self.services = services
        self.node = node
        self.durable = durable
        self.state = state
        self.again_below = again_below  # EIDs below may have been given by a process that was killed
        self.links: list[Link] = []
        self.moving = False  # its place is being moved
        self.window: StoreWindow | None = None
        self.cursor = Cursor(state.position)
        self.fresh = Intervals()
        self._suspended = False  # its store has become shorter, and the journal does not say so yet
        self._fetching = False
        self._retry_s = 0.0  # no fetch before
        self._elsewhere: dict[object, Excluded] = {}  # by `Link.link`

    @property
    def paused(self) -> bool:
        """Nothing is given now."""
        return self.moving or self._suspended

    @property
    def current(self) -> Node:
        """Properties change while it is open."""
        return self.services.metadata.stores.get(self.node.store, self.node)

    def excluded(self, link: Link) -> Excluded | None:
        """What that link wanted to go elsewhere."""
        return self._elsewhere.get(link.link)

    def bars(self, link: Link, eid: int) -> bool:
        excluded = self._elsewhere.get(link.link)
        return excluded is not None and eid in excluded.eids

    @abstractmethod
    def wake(self, link: Link) -> None:
        """Something is kept for it."""

    @abstractmethod
    def expire(self, eids: list[int], chunk: Chunk) -> None:
        """Their time is over."""

    @abstractmethod
    def filter_out(self, eids: list[int], chunk: Chunk) -> None:
        """They are not what this durable is for."""

    @abstractmethod
    def unreadable(self, failure: Failure) -> None:
        """A read failed."""

    def count_repeated(self, gathering: Gathering) -> None:
        """All that is gathered so far was returned. What of it is fresh is given for the first time."""
        eids = gathering.eids
        gathering.repeated = len(eids)
        if self.fresh and eids:
            before = [eid not in self.fresh for eid in eids]
            gathering.before = None if all(before) else before
            for first, last in dense_runs(sorted(eids)):
                self.fresh.discard(first, last)

    # -- reading again

    def readable(self, eid: int) -> Chunk | None:
        fetched = self.services.windows.again(self)
        if fetched is not None and fetched.start <= eid < fetched.end:
            return fetched
        return self.window.held(eid) if self.window is not None else None

    def fetch(self, start: int) -> bool:
        """Read again from `start`; True when that, or another such read, is under way."""
        if self._fetching:
            return True
        if self.window is None or self.services.clock.monotonic_s() < self._retry_s:
            return False
        self._fetching = True
        log, node, count = self.services.log, self.node, self.window.count
        deadline_s = self.services.limits.control_deadline_s

        def read() -> Records:
            return log.control.read_range(node.topic, node.partition, start, count, deadline_s)

        def done(records: Records | LogError) -> None:
            self._fetching = False
            if isinstance(records, LogError):
                self._retry_s = self.services.clock.monotonic_s() + self.services.limits.retry_interval_s
                self.unreadable(records.failure)
            elif records.next <= start:  # it had been there
                self.unreadable(Failure("retention", f"{node.topic} ends below {start}"))
            elif self.window is not None:
                ttl_ms, windows = self.current.properties.ttl_ms, self.services.windows
                windows.keep(self, chunk_of(start, records, ttl_ms, windows.frame))

        self.services.worker.submit(read, done)
        return True
