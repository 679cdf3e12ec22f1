"""How many messages every queue and durable of a realm has, also those that nothing was consumed from since the start.

The same numbers for metrics, commands and group offsets. None: the store is still being counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from native_backend.dispatch.context import RealmContext
from native_backend.dispatch.dispatcher import Dispatcher
from native_backend.events.message_counts import Tally, tally
from native_backend.nodes.durable import QUEUE, Durable
from native_backend.nodes.durable_terms import DurableTerms
from native_backend.nodes.node import Node
from native_backend.state.ack_state import AckState
from native_backend.state.intervals import Intervals

Known = list[tuple[Node, Durable]]


class States(Protocol):
    """The shard that owns them."""

    def state(self, store: int, name: str) -> AckState | None: ...

    def terms(self, node: Node, name: str) -> DurableTerms | None: ...

    def opened(self, node: Node, name: str) -> Dispatcher | None: ...


class Depths:
    """See the module's docstring."""

    def __init__(self, context: RealmContext, shard: States) -> None:
        self._context, self._metadata, self._shard = context, context.metadata, shard
        self._durables: Known = []
        self._as_of: tuple[int, int, int] | None = None

    def durables(self) -> Known:
        """Every durable in every store of its node."""
        metadata = self._metadata
        as_of = metadata.position, len(metadata.durables), len(metadata.stores)
        if as_of != self._as_of:
            self._as_of, self._durables = as_of, [*metadata.each_durable()]
        return self._durables

    def channels(self) -> list[Node]:
        """Every store of every channel."""
        return [node for node in self._metadata.stores.values() if node.kind == "channel"]

    def state(self, durable: Durable) -> AckState:
        """As it is now; of one that nothing was ever consumed from, where it begins."""
        return self._shard.state(durable.store, durable.name) or AckState(durable.start)

    def is_kept(self, node: Node, durable: Durable) -> bool:
        """False once its end has begun, also where it could not be erased: nothing may make its group anew."""
        known = (node.name, durable.name) in self._metadata.durables
        return known and self._shard.terms(node.part(0), durable.name) is not None

    def version(self, node: Node, durable: Durable) -> tuple[int, int] | None:
        """Changes whenever a lag has to be shown anew. None: it is being counted."""
        events = self._context.events.get((node.topic, node.partition))
        if events is None or not events.known:
            return None
        state = self._shard.state(durable.store, durable.name)
        return state.changes if state is not None else 0, events.changes

    def steps(self, node: Node, durable: Durable) -> Iterator[Tally | None]:
        """None for each step, then the tally; without one the store is being counted."""
        events = self._context.events.get((node.topic, node.partition))
        if events is None or not events.known:
            return
        dispatch = self._shard.opened(node, durable.name)
        given: list[Intervals] = []
        unsettled = 0
        if dispatch is not None:
            given = [ranges for link in dispatch.links for ranges in (link.outstanding, link.reserved) if ranges]
            unsettled = dispatch.away + sum(link.outstanding.count() for link in dispatch.links)
        yield from tally(events, self.state(durable), given, unsettled, self._context.clock.epoch_us() // 1000)

    def queue(self, node: Node) -> Durable | None:
        """A queue's own state, in the store `node`."""
        durable = self._metadata.durable(node.part(0), QUEUE) if node.kind == "queue" else None
        return durable.of(node) if durable is not None else None

    def stored(self, node: Node) -> Iterator[int | None]:
        """Messages in one store of a node: None for each step, then how many."""
        durable = self.queue(node)
        if durable is not None:
            for step in self.steps(node, durable):
                yield step.counts.stored if step is not None else None
            return
        events = self._context.events.get((node.topic, node.partition))
        if events is not None and events.known:
            yield events.messages(self._context.clock.epoch_us() // 1000)

    def oldest(self, node: Node, durable: Durable | None = None) -> Iterator[int | None]:
        """The oldest message of a durable, or of one store of a node: None for each step, then when it was stored, in
        milliseconds since 1970, or 0 where there is no message. Nothing: the store is being counted."""
        events = self._context.events.get((node.topic, node.partition))
        if events is None or not events.known:
            return
        durable = durable or self.queue(node)
        state = self.state(durable) if durable is not None else AckState(0)
        eid = None
        events.pass_time(self._context.clock.epoch_us() // 1000)
        for eid in events.first_message(state.low, state.acked):
            if eid is None:
                yield None
        yield (events.times.time_ms(eid) or 0) if eid is not None else 0

    @property
    def counting(self) -> int:
        """Stores that are still being counted."""
        known = self._context.events
        return sum(
            events is None or not events.known
            for events in (known.get((node.topic, node.partition)) for node in self._metadata.stores.values())
        )
