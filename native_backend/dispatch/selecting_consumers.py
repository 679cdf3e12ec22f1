"""The links with selections of one durable or queue, and what they have in common: what they passed over."""

from __future__ import annotations

from typing import Any

from native_backend.dispatch.backlog import Backlog
from native_backend.dispatch.next_events import EventPicker
from native_backend.dispatch.selecting_consumer import SelectingConsumer
from native_backend.events.chunk import Chunk
from native_backend.events.selection import Selection
from native_backend.journal.settlement import Settlement
from native_backend.state.ack_state import AckState, Run
from native_backend.state.intervals import Intervals, dense_runs


class SelectingConsumers:
    """See the module's docstring."""

    def __init__(self, backlog: Backlog, picker: EventPicker) -> None:
        self._backlog, self._picker = backlog, picker
        self._consumers: dict[Any, SelectingConsumer] = {}  # by link

    def enter(self, link: Any, selection: Selection) -> SelectingConsumer:
        """A link that has entered the dispatch takes by this from now on."""
        ends = self._backlog.node.kind == "channel"
        consumer = self._consumers[link] = SelectingConsumer(self._backlog, self._picker, link, selection, ends)
        return consumer

    def leave(self, link: Any) -> None:
        if link in self._consumers:
            self._consumers.pop(link).leave()

    def wake(self, link: Any) -> None:
        if link in self._consumers:
            self._consumers[link].notify()

    def notify(self) -> None:
        for consumer in self._consumers.values():
            consumer.notify()

    def settled(self, settlement: Settlement) -> None:
        """The journal holds it."""
        for link, consumer in self._consumers.items():
            consumer.settled(settlement, settlement.undeliverable_here and settlement.link is link)

    def cut(self, end: int) -> None:
        """What lies at or above `end` is not what it was."""
        self._backlog.fresh.remove_from(end)
        for consumer in self._consumers.values():
            consumer.cut(end)

    def forget(self) -> None:
        """The place was moved."""
        self._backlog.fresh = Intervals()
        for consumer in self._consumers.values():
            consumer.forget()


def unowned_runs(state: AckState, chunk: Chunk, eids: list[int]) -> list[Run]:
    """Of events that no link has, with the gaps before them."""
    covers, gaps = state.covers, chunk.gaps
    return [(first, last, 0, min(covers.get(first, first), gaps.get(first, first))) for first, last in dense_runs(eids)]
