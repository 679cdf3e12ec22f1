"""A subscription to a node of several stores: one subscription for each store, taken from by turns.

By turns where the stores are plain partitions; the highest level first where they are levels of priority, but of every
`level_turns` takes one begins at the lowest (nothing waits for ever), and lower levels wait a moment at the beginning
until the readers of higher ones have begun. What is given out says which store it comes from; what is settled is named
by its *place*: partition and EID in one number. All places of one call are of one store.
Source: AMQP 1.0, 3.2.1 (C-1 to C-4). May import: the standard library, `native_backend` below it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import zip_longest

from native_backend.answers import Answer, SettleAnswer, Settled, SubscribeAnswer, SubscriptionLost
from native_backend.browsing import Browsing
from native_backend.delivery import Delivered
from native_backend.dispatch import Dispatch
from native_backend.lobby import Wake
from native_backend.log import Failure, LogError
from native_backend.log_end import last_event
from native_backend.nodes import Node
from native_backend.services import Services, store_bounds
from native_backend.settlement import Settlement, Settling
from native_backend.shard import Shard
from native_backend.starting import place_of
from native_backend.subscription import DurableSubscription, PlainSubscription, Subscribe, Subscription
from native_backend.terms import Terms

_SHIFT = 48
_MASK = (1 << _SHIFT) - 1


def place(partition: int, eid: int) -> int:
    """EIDs are below 2^48: a million events a second for nine years."""
    return partition << _SHIFT | eid


def partition_of(place: int) -> int:
    return place >> _SHIFT


def eids_of(places: list[int]) -> list[int]:
    return [place & _MASK for place in places]


def by_partition(places: list[int]) -> dict[int, list[int]]:
    """Which elements are of which store."""
    found: dict[int, list[int]] = {}
    for at, one in enumerate(places):
        found.setdefault(one >> _SHIFT, []).append(at)
    return found


@dataclass(frozen=True, slots=True)
class Opened:
    """One store of the node, ready to be subscribed to. `dispatch`: None for a plain subscription."""

    node: Node
    place: int  # where a subscription without a state begins
    end: int
    last: int  # the last event, for one that browses
    dispatch: Dispatch | None = None


Done = Callable[[list[Opened] | LogError], None]
_Places = tuple[int, int, int]  # of `Opened`: place, end, last


def open_stores(
    services: Services, shard: Shard, request: Subscribe, durable: str | None, terms: Terms, done: Done
) -> None:
    """All stores of the node, one after another; of the durable where one is named."""
    node, parts = request.node, request.node.parts
    dispatches: list[Dispatch] = []
    deadline_s = services.limits.control_deadline_s

    def look(part: Node) -> _Places:
        bounds = store_bounds(services.log, part, deadline_s)
        place = place_of(request.start, services.log, part, bounds, deadline_s)
        last = last_event(services.log, part, bounds, deadline_s) if request.mode == "browse" else -1
        return place, bounds[1], last

    def looked(seen: list[_Places] | LogError) -> None:
        if isinstance(seen, LogError):
            done(seen)
        elif not services.metadata.alive(node):
            done(LogError(Failure("not-found", f"node {node.name!r} was deleted")))
        elif dispatches and services.journal.fenced:
            done(LogError(Failure("fenced", "it is in use")))  # meanwhile
        else:
            columns = zip_longest(zip(parts, seen, strict=True), dispatches)
            done([Opened(part, place, end, last, of) for (part, (place, end, last)), of in columns])

    def opened(found: Dispatch | LogError) -> None:
        if isinstance(found, LogError):
            done(found)
            return
        dispatches.append(found)
        more()

    def more() -> None:
        if durable is not None and len(dispatches) < len(parts):
            shard.open(parts[len(dispatches)], durable, opened, terms, request.start)
        else:
            services.control.submit(lambda: [look(part) for part in parts], looked)

    more()


class SpreadSubscription(Subscription):
    """See the module's docstring."""

    def __init__(
        self,
        services: Services,
        request: Subscribe,
        owner: object,
        closed: Callable[[Subscription], None],
        stores: list[Opened],
    ) -> None:
        super().__init__(services, request, owner, closed)
        heard = replace(services, answer=self._heard)
        self._stores = [_one(heard, request, owner, store) for store in stores]
        self._ends = [store.end for store in stores]
        self._levels = request.node.properties.priority_levels > 0
        self._order = range(len(stores))
        self._turn = 0
        until_s = services.clock.monotonic_s() + services.limits.level_start_s
        self._start_until_s = until_s if self._levels else 0.0

    # -- out

    def take(self, count_max: int, bytes_max: int) -> Delivered | None:
        """The events of one store; ask again for those of others."""
        if not self._open or self._lost is not None:
            return None
        for at in self._next_stores():
            delivered = self._stores[at].take(count_max, bytes_max)
            if delivered is not None:
                self._turn += 1
                return replace(delivered, partition=at)
            if self._start_until_s and self._is_starting(at):
                self.looking = True
                return None
        self.looking = any(store.looking for store in self._stores)
        return None

    def is_searched(self) -> bool:
        over = [store.is_searched() for store in self._stores]  # each begins to look
        return not self.looking and all(over)

    def search_anew(self) -> None:
        for store in self._stores:
            store.search_anew()

    def park(self, wake: Wake) -> bool:
        """At every store: whichever has something first wakes it, and it may be woken again by another."""
        if self._start_until_s:
            return False
        return all(store.park(wake) for store in self._stores)

    def _next_stores(self) -> list[int] | range:
        order = self._order
        if not self._levels:
            first = self._turn % len(order)
            return [*order[first:], *order[:first]]
        return order if (self._turn + 1) % self._services.limits.level_turns == 0 else order[::-1]

    def _is_starting(self, at: int) -> bool:
        """It may have something that its reader has not brought yet."""
        if self._services.clock.monotonic_s() >= self._start_until_s:
            self._start_until_s = 0.0
            return False
        return self._stores[at].position < self._ends[at]

    @property
    def position(self) -> int:
        """Of a whole node there is none."""
        return 0

    # -- settling

    def settle(self, settling: Settling, eids: list[int], seqs: list[int], owner: object) -> None:
        if self._lost is not None:
            answer: SettleAnswer = self._lost if self._lost in ("not-found", "access-denied") else "unexpected"
            self._services.answer(Settled(owner, answer, self._lost))
            return
        self._of(eids).settle(settling, eids_of(eids), seqs, owner)

    def last_attempts(self, eids: list[int]) -> list[bool] | None:
        return self._of(eids).last_attempts(eids_of(eids))

    def hold(self, eids: list[int]) -> bool:
        return self._of(eids).hold(eids_of(eids))

    def unhold(self, eids: list[int]) -> None:
        self._of(eids).unhold(eids_of(eids))

    def enlist(self, settling: Settling, eids: list[int], seqs: list[int]) -> Settlement | None:
        if self._lost is not None:
            return None
        return self._of(eids).enlist(settling, eids_of(eids), seqs)

    def _of(self, places: list[int]) -> Subscription:
        return self._stores[partition_of(places[0])]

    # -- the end

    def lose(self, answer: SubscribeAnswer, native: str) -> None:
        if self._lost is None:
            super().lose(answer, native)
            self._leave()

    def _heard(self, answer: Answer) -> None:
        """What the subscription of one store has to say; its loss is ours."""
        if isinstance(answer, SubscriptionLost):
            self.lose(answer.answer, answer.native)
        else:
            self._services.answer(answer)

    def _leave(self) -> None:
        for store in self._stores:
            store.close()


def _one(services: Services, request: Subscribe, owner: object, store: Opened) -> Subscription:
    request = replace(request, node=store.node)
    if store.dispatch is None:
        return PlainSubscription(services, request, owner, _nobody, store.place)
    if request.mode == "browse":
        return Browsing(services, request, owner, _nobody, store.dispatch.state, store.last)
    return DurableSubscription(services, request, owner, _nobody, store.dispatch)


def _nobody(_: Subscription) -> None:
    """Nobody counts the parts."""
