"""The links with selections of one durable or queue, and what they have in common: what they passed over.

`fresh` is what is returned and yet nobody ever had: a link with a selection passed it over. May import: the standard
library, `native_backend` below it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from native_backend.acknowledgement import Acknowledgement, Run
from native_backend.delivery import Gathering
from native_backend.feed import Chunk
from native_backend.giving import Giving
from native_backend.intervals import Intervals, dense_runs
from native_backend.log import Failure
from native_backend.nodes import Node
from native_backend.selection import Selection
from native_backend.services import Services
from native_backend.settlement import Keeper, Settlement
from native_backend.sifting import Sifter


class Shared(Keeper, Protocol):
    """The `Dispatch` whose links they are."""

    state: Acknowledgement

    def expire(self, eids: list[int], chunk: Chunk) -> None: ...

    paused: bool
    again_below: int
    node: Node


class Sifters:
    """See the module's docstring. `giving` and `unreadable` are the dispatch's."""

    def __init__(
        self,
        services: Services,
        dispatch: Shared,
        giving: Giving,
        unreadable: Callable[[Failure], None],
    ) -> None:
        self.services, self.dispatch, self.state = services, dispatch, dispatch.state
        self.giving, self.given, self.unreadable = giving, giving.given, unreadable
        self.fresh = Intervals()
        self._sifters: dict[Any, Sifter] = {}  # by link

    def enter(self, link: Any, selection: Selection) -> Sifter:
        """A link that has entered the dispatch takes by this from now on."""
        node = self.dispatch.node
        feed = self.services.feeds.feed(node)
        sifter = self._sifters[link] = Sifter(self, feed, link, selection, node.kind == "channel")
        return sifter

    def leave(self, link: Any) -> None:
        if link in self._sifters:
            self._sifters.pop(link).leave()

    def wake(self, link: Any) -> None:
        if link in self._sifters:
            self._sifters[link].stir()

    def stir(self) -> None:
        for sifter in self._sifters.values():
            sifter.stir()

    def count_repeated(self, gathering: Gathering) -> None:
        """All that is gathered so far was returned. What of it is fresh is given for the first time."""
        eids = gathering.eids
        gathering.repeated = len(eids)
        if self.fresh and eids:
            before = [eid not in self.fresh for eid in eids]
            gathering.before = None if all(before) else before
            for first, last in dense_runs(sorted(eids)):
                self.fresh.discard(first, last)

    def filter_out(self, eids: list[int], chunk: Chunk) -> None:
        """They are not what this durable is for."""
        runs = unowned_runs(self.state, chunk, eids)
        settlement = Settlement(self.dispatch, None, "filtered", False, False, "selector", runs, len(eids), None)
        self.services.journal.add(settlement)

    def settled(self, settlement: Settlement) -> None:
        """The journal holds it."""
        for link, sifter in self._sifters.items():
            sifter.settled(settlement, settlement.elsewhere and settlement.link is link)

    def forget(self) -> None:
        """The place was moved."""
        self.fresh = Intervals()
        for sifter in self._sifters.values():
            sifter.forget()


def unowned_runs(state: Acknowledgement, chunk: Chunk, eids: list[int]) -> list[Run]:
    """Of events that no link has, with the gaps before them."""
    covers, gaps = state.covers, chunk.gaps
    return [(first, last, 0, min(covers.get(first, first), gaps.get(first, first))) for first, last in dense_runs(eids)]
