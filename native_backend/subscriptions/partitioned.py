"""A subscription to a node of several stores: one subscription for each store, taken from by turns.

By turns where the stores are plain partitions; the highest level first where they are levels of priority, but of
every `level_turns` takes one begins at the lowest (nothing waits for ever), and at the beginning a lower level waits
until the readers of higher ones have brought what is stored there, at most `level_start_s`. What is given out says
which store it comes from; what is settled is named by its packed EID: partition and EID in one number. All of one
call are of one store.
Source: AMQP 1.0, 3.2.1 (C-1 to C-4).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import zip_longest

from native_backend.access.durable_owner import owner_of
from native_backend.dispatch.context import RealmContext, shown_bounds, start_bounds
from native_backend.dispatch.dispatcher import Dispatcher
from native_backend.events.batch import DeliveryBatch
from native_backend.events.log_end import last_event
from native_backend.events.wait_list import Wake
from native_backend.journal.settlement import Settlement, SettlementRequest
from native_backend.log.port import Failure, LogError
from native_backend.nodes.answers import Answer
from native_backend.nodes.node import Node
from native_backend.nodes.start_position import start_of
from native_backend.shard.durable_records import Beginning
from native_backend.shard.shard import Shard
from native_backend.subscriptions.browser import Browser
from native_backend.subscriptions.durable_subscription import DurableSubscription
from native_backend.subscriptions.plain_subscription import PlainSubscription
from native_backend.subscriptions.subscription import Subscribe, Subscription, SubscriptionLost, unsettled

_SHIFT = 48
_MASK = (1 << _SHIFT) - 1


def packed_eid(partition: int, eid: int) -> int:
    """EIDs are below 2^48: a million events a second for nine years."""
    return partition << _SHIFT | eid


def partition_of(packed_eid: int) -> int:
    return packed_eid >> _SHIFT


def packed_eids(partition: int, eids: list[int]) -> list[int]:
    """Those of the first store, of a node of one store all, are their EIDs."""
    return [partition << _SHIFT | eid for eid in eids] if partition else eids


def eids_of(packed: list[int]) -> list[int]:
    """All of one store."""
    return [packed_eid & _MASK for packed_eid in packed] if packed and packed[0] > _MASK else packed


def by_partition(packed: list[int]) -> dict[int, list[int]]:
    """Which elements are of which store."""
    positions: dict[int, list[int]] = {}
    for at, eid in enumerate(packed):
        positions.setdefault(eid >> _SHIFT, []).append(at)
    return positions


@dataclass(frozen=True, slots=True)
class OpenedStore:
    """One store of the node, ready to be subscribed to. `dispatch`: None for a plain subscription. Both
    EIDs are only found where `_looks`."""

    node: Node
    start_eid: int  # where a subscription without a state begins
    last: int  # the last event, for one that browses or has levels
    dispatch: Dispatcher | None = None


Done = Callable[[list[OpenedStore] | LogError], None]
_Ends = tuple[int, int]  # of `OpenedStore`: start_eid, last
_NOT_LOOKED = 0, -1


def open_stores(context: RealmContext, shard: Shard, request: Subscribe, durable: str | None, done: Done) -> None:
    """All stores of the node, one after another; of the durable where one is named. From now on until it is `done`
    only an operator can end that durable or begin it anew."""
    _Opening(context, shard, request, durable, done).begin()


class _Opening:
    """Of one node. Nothing in it refers back to it: who asked is not kept by a cycle once that has gone."""

    def __init__(
        self, context: RealmContext, shard: Shard, request: Subscribe, durable: str | None, done: Done
    ) -> None:
        self._context, self._shard, self._request = context, shard, request
        self._durable, self._done = durable, done
        self._parts = request.node.parts
        self._begins = _beginning(request)
        self._dispatches: list[Dispatcher] = []

    def begin(self) -> None:
        if self._durable is not None:
            self._shard.expect(self._request.node, self._durable)
        self._more()

    def _more(self) -> None:
        durable, at = self._durable, len(self._dispatches)
        if durable is not None and at < len(self._parts):
            self._shard.open(self._parts[at], durable, self._found, self._begins)
        elif _looks(self._request):
            self._context.worker.submit(lambda: [self._look(part) for part in self._parts], self._looked)
        else:
            self._looked([_NOT_LOOKED] * len(self._parts))

    def _found(self, reply: Dispatcher | LogError) -> None:
        if isinstance(reply, LogError):
            self._looked(reply)
            return
        self._dispatches.append(reply)
        self._more()

    def _look(self, part: Node) -> _Ends:
        """Blocks."""
        context, start = self._context, self._request.start
        log, deadline_s = context.log, context.limits.control_deadline_s
        start_eid, last = 0, -1
        if self._request.mode == "plain":
            start_eid = start_of(start, log, part, start_bounds(context, part, start), deadline_s)
        if _wants_last(self._request):
            last = last_event(log, part, shown_bounds(context, part), deadline_s)
        return start_eid, last

    def _looked(self, seen: list[_Ends] | LogError) -> None:
        if self._durable is not None:
            self._shard.arrived(self._request.node, self._durable)
        self._done(self._opened(seen))

    def _opened(self, seen: list[_Ends] | LogError) -> list[OpenedStore] | LogError:
        """What came of it, unless something has changed meanwhile."""
        parts, name = self._parts, self._durable
        if isinstance(seen, LogError):
            return seen
        if not self._context.metadata.alive(parts[0]):
            return LogError(Failure("not-found", f"node {parts[0].name!r} was deleted"))
        if name is not None and self._context.journal.fenced:
            return LogError(Failure("fenced", "it is in use"))
        opened_parts = zip(parts, self._dispatches, strict=False)
        if any(self._shard.opened(part, str(name)) is not dispatch for part, dispatch in opened_parts):
            return LogError(Failure("not-found", f"durable {name!r} was deleted"))
        columns = zip_longest(zip(parts, seen, strict=True), self._dispatches)
        return [OpenedStore(part, start, last, opened) for (part, (start, last)), opened in columns]


def _beginning(request: Subscribe) -> Beginning:
    """Of a durable; a queue's state begins with the queue."""
    if request.mode != "durable":
        return Beginning()
    return Beginning(request.terms, request.start, owner_of(request.subject) if request.owned else "")


def _looks(request: Subscribe) -> bool:
    """What has a state knows where it begins; but of levels it matters which have something, and a browser tells what
    was there from what comes."""
    return request.mode == "plain" or _wants_last(request)


def _wants_last(request: Subscribe) -> bool:
    return request.mode == "browse" or request.node.properties.priority_levels > 1


Closed = Callable[[Subscription], None]


def subscribed(
    context: RealmContext, request: Subscribe, owner: object, closed: Closed, stores: list[OpenedStore]
) -> Subscription:
    """To all of them: of a node with one store, the subscription to that."""
    if len(stores) == 1:
        return _one(context, request, owner, closed, stores[0])
    return PartitionedSubscription(context, request, owner, closed, stores)


class PartitionedSubscription(Subscription):
    """See the module's docstring."""

    def __init__(
        self,
        context: RealmContext,
        request: Subscribe,
        owner: object,
        closed: Closed,
        stores: list[OpenedStore],
    ) -> None:
        super().__init__(context, request, owner, closed)
        heard = replace(context, answer=self._heard)
        self._stores = [_one(heard, request, owner, _uncounted, store) for store in stores]
        self._lasts = [store.last for store in stores]
        self._levels = request.node.properties.priority_levels > 1
        self._order = range(len(stores))
        self._turn = 0
        until_s = context.clock.monotonic_s() + context.limits.level_start_s
        self._start_until_s = until_s if self._levels else 0.0

    # -- out

    def take(self, count_max: int, bytes_max: int) -> DeliveryBatch | None:
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
        self._start_until_s = 0.0  # every level was asked, and none has more of what was there at the beginning
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
        if self._lost is not None:
            return True
        if self._start_until_s:
            return False
        return all(store.park(wake) for store in self._stores)

    def _next_stores(self) -> list[int] | range:
        order = self._order
        if not self._levels:
            first = self._turn % len(order)
            return [*order[first:], *order[:first]]
        return order if (self._turn + 1) % self._context.limits.level_turns == 0 else order[::-1]

    def _is_starting(self, at: int) -> bool:
        """It may have something that its reader has not brought yet."""
        if self._context.clock.monotonic_s() >= self._start_until_s:
            self._start_until_s = 0.0
            return False
        store = self._stores[at]
        return store.looking or store.reached <= self._lasts[at]

    @property
    def position(self) -> int:
        """Of a whole node there is none."""
        return 0

    # -- settling

    def settle(self, settling: SettlementRequest, eids: list[int], seqs: list[int], owner: object) -> None:
        if self._lost is not None:
            self._context.answer(unsettled(self._lost, owner))
        else:
            self._of(eids).settle(settling, eids_of(eids), seqs, owner)

    def waiting(self) -> int | None:
        counts = [store.waiting() for store in self._stores]
        return None if None in counts else sum(count for count in counts if count is not None)

    def forget(self, eids: list[int]) -> None:
        self._of(eids).forget(eids_of(eids))

    def last_attempts(self, eids: list[int]) -> list[bool] | None:
        return self._of(eids).last_attempts(eids_of(eids))

    def reserve(self, eids: list[int]) -> bool:
        return self._of(eids).reserve(eids_of(eids))

    def unreserve(self, eids: list[int]) -> None:
        self._of(eids).unreserve(eids_of(eids))

    def retire(self, settling: SettlementRequest, eids: list[int], seqs: list[int]) -> Settlement | None:
        if self._lost is not None:
            return None
        return self._of(eids).retire(settling, eids_of(eids), seqs)

    def _of(self, packed: list[int]) -> Subscription:
        return self._stores[partition_of(packed[0]) if packed else 0]

    # -- the end

    def _heard(self, answer: Answer) -> None:
        """What the subscription of one store has to say; its loss is ours."""
        if isinstance(answer, SubscriptionLost):
            self.lose(answer.answer, answer.native)
        else:
            self._context.answer(answer)

    def _leave(self) -> None:
        for store in self._stores:
            store.close()


def _one(context: RealmContext, request: Subscribe, owner: object, closed: Closed, store: OpenedStore) -> Subscription:
    request = replace(request, node=store.node)
    if store.dispatch is None:
        return PlainSubscription(context, request, owner, closed, store.start_eid)
    if request.mode == "browse":
        return Browser(context, request, owner, closed, store.dispatch, store.last)
    return DurableSubscription(context, request, owner, closed, store.dispatch)


def _uncounted(_: Subscription) -> None:
    """The parts are not counted."""
