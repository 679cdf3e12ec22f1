"""Stores that became shorter than the realm knew them: after an unclean leader election, the loss of a disk, or with a
topic that was restored from a backup.

What is stored from then on gets EIDs that states hold for given and acknowledged: it would be given to no link. So each
durable of such a store pauses; links that hold lost events end; the journal gets a note (`truncated`); with it the
state forgets what lies at or above the end, also after a crash. Then the durable goes on. Publishes of that time are
answered after that: a process that is killed in between has not reported them as stored.

What had been acknowledged below the end stays so; what had not is given. What lay above the end is lost, and counted.
Noticed where a store is opened or read beyond its end, and by the offset of what is stored (`known_ends`). A store that
others made longer again before this process looked cannot be recognised by its length (ADR 0078).
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from native_backend.dispatch.context import RealmContext, certain_bounds
from native_backend.dispatch.dispatcher import Dispatcher
from native_backend.journal.each_store import EachStore
from native_backend.log.port import Appended, LogError, TopicPartition
from native_backend.nodes.node import Node
from native_backend.shard.shard import Shard

_LOG = logging.getLogger(__name__)
ALARM = "events lost by truncation"


@dataclass(slots=True, eq=False)
class _Cut:
    """One store on its way. `open`: notes that the journal does not hold yet."""

    node: Node
    end: int
    open: int = 1  # this one goes when all notes are on their way
    withheld: list[Callable[[], None]] = field(default_factory=list)


class Truncations:
    """Of one realm."""

    def __init__(self, context: RealmContext, shard: Shard) -> None:
        self._context, self._metadata, self._shard = context, context.metadata, shard
        self._cuts: dict[TopicPartition, _Cut] = {}
        self._unseen: deque[tuple[Node, int]] = deque()  # stores of this realm, and how far a state has come
        self.timer = context.timers.timer("truncations", self._look)
        context.known.on_short = self._noticed
        shard.on_opened = self._opened

    def begin(self) -> None:
        """The states are known: what they have passed was there."""
        furthest: dict[int, int] = {}
        for (store, _), state in self._shard.states().items():
            furthest[store] = max(furthest.get(store, 0), state.position)
        for store, position in furthest.items():
            node = self._metadata.stores.get(store)
            if node is not None:
                self._context.known.reached((node.topic, node.partition), position)
                self._unseen.append((node, position))
        self.timer.soon()

    def _look(self) -> None:
        """Once at every store, one after another, also at those that are not asked for."""
        if not self._unseen:
            return
        context = self._context
        node, position = self._unseen.popleft()
        place = node.topic, node.partition
        cuts = context.known.cuts(place)

        def looked(bounds: tuple[int, int] | LogError) -> None:
            self.timer.soon()
            if not isinstance(bounds, LogError) and bounds[1] < position:
                context.known.looked(place, bounds[1], position, cuts)

        context.worker.submit(lambda: certain_bounds(context, node, position), looked)

    def withholds(self, appended: Appended, tell: Callable[[Appended], None]) -> bool:
        """Whether its answer comes later, because its store is being cut."""
        cut = self._cuts.get((appended.batch.topic, appended.batch.partition)) if self._cuts else None
        if cut is None:
            return False
        cut.withheld.append(lambda: tell(appended))
        return True

    def _noticed(self, place: TopicPartition, end: int, known: int) -> None:
        if place in self._cuts:  # by another reader, while the first notice is dealt with
            return
        nodes = self._metadata.stores.values()
        node = next((node for node in nodes if (node.topic, node.partition) == place), None)
        if node is None:
            return
        lost = max(1, known - end)
        self._context.alarms[ALARM] += lost
        _LOG.error(
            "node %r: partition %d of topic %s ends at %d, and was known to end at %d: %d EIDs are lost. Find out what "
            "made the topic shorter (an unclean election, a restored backup); events stored from now on are delivered",
            node.name,
            place[1],
            place[0],
            end,
            known,
            lost,
        )
        self._begin(_Cut(node, end))

    def _begin(self, cut: _Cut) -> None:
        node, end = cut.node, cut.end
        self._cuts[node.topic, node.partition] = cut
        if not self._context.journal.fenced:
            for (store, durable), state in self._shard.states().items():
                if store == node.store and state.position > end:
                    cut.open += 1
                    self._suspend(cut, durable, state.position)
        self._ended(cut)

    def _suspend(self, cut: _Cut, durable: str, position: int) -> None:
        """Until the journal holds its note."""
        dispatch = self._shard.opened(cut.node, durable)
        if dispatch is not None:
            dispatch.suspend(cut.end)
        note = {(cut.node.name, durable, cut.node.store): (cut.end, position - 1, 0, cut.end)}
        stored, refused = partial(self._noted, cut, durable), partial(self._not_noted, cut, durable)
        EachStore(self._context.journal, stored, refused).note("truncated", "truncation", note)

    def _opened(self, dispatch: Dispatcher) -> None:
        """While its store is being cut."""
        node = dispatch.node
        cut = self._cuts.get((node.topic, node.partition)) if self._cuts else None
        if cut is not None:
            dispatch.suspend(cut.end)

    def _noted(self, cut: _Cut, durable: str) -> None:
        """The journal holds the note of one durable."""
        self._shard.cut(cut.node.store, durable, cut.end)
        self._ended(cut)

    def _not_noted(self, cut: _Cut, durable: str) -> None:
        _LOG.error("the journal has no note that %r of node %r was cut", durable, cut.node.name)
        self._ended(cut)

    def _ended(self, cut: _Cut) -> None:
        """One of its notes is stored, or never will be."""
        cut.open -= 1
        if cut.open:
            return
        context, node = self._context, cut.node
        del self._cuts[node.topic, node.partition]
        context.known.cut((node.topic, node.partition))
        context.windows.cut(node.store, cut.end)
        context.ends.forget(node.store)
        if node.store in context.counted:
            context.counted[node.store].recount()
        if (node.topic, node.partition) in context.events:
            context.events[node.topic, node.partition].forget()
        self._shard.resume(node.store, cut.end)
        for tell in cut.withheld:
            tell()
