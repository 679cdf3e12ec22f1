"""Subscriptions with a state in the realm: of a queue, whose links compete, and of a durable."""

from __future__ import annotations

from collections.abc import Callable

from native_backend.dispatch.context import RealmContext
from native_backend.dispatch.dispatcher import Dispatcher
from native_backend.dispatch.transaction_hold import reserve, retire, unreserve
from native_backend.events.batch import DeliveryBatch
from native_backend.events.wait_list import Wake
from native_backend.journal.settlement import Settlement, SettlementRequest
from native_backend.subscriptions.subscription import Subscribe, Subscription, unsettled


class DurableSubscription(Subscription):
    """A link of a queue, or of a durable."""

    def __init__(
        self,
        context: RealmContext,
        request: Subscribe,
        owner: object,
        closed: Callable[[Subscription], None],
        dispatch: Dispatcher,
    ) -> None:
        super().__init__(context, request, owner, closed)
        self._dispatch = dispatch
        dispatch.enter(self)
        self._selecting = (
            dispatch.selecting_consumers.enter(self, request.selection) if request.selection is not None else None
        )

    def take(self, count_max: int, bytes_max: int) -> DeliveryBatch | None:
        if not self._open or self._lost is not None or count_max <= 0 or bytes_max <= 0:
            return None
        if not self._context.gives:
            self.looking = True  # what there is was not looked at: a drain is not over
            return None
        if self._selecting is None:
            delivered = self._dispatch.take(self, count_max, bytes_max)
            self.looking = self._dispatch.is_fetching
        else:
            delivered = self._selecting.take(count_max, bytes_max)
            self.looking = self._selecting.looking
        self.wants_more = delivered is None or len(delivered.eids) < count_max
        if delivered is not None:
            self.search_anew()
        return delivered

    @property
    def reached(self) -> int:
        return self._dispatch.state.position

    def is_searched(self) -> bool:
        """What it gave back itself is there once the journal holds that."""
        return super().is_searched() and not self._dispatch.is_returning(self)

    def park(self, wake: Wake) -> bool:
        if self._lost is not None:
            return True
        return self._dispatch.park(self, wake) if self._selecting is None else self._selecting.park(wake)

    def settle(self, settling: SettlementRequest, eids: list[int], seqs: list[int], owner: object) -> None:
        if self._lost is not None:
            self._context.answer(unsettled(self._lost, owner))
        else:
            self._dispatch.settle(self, settling, eids, seqs, owner)

    def last_attempts(self, eids: list[int]) -> list[bool] | None:
        return self._dispatch.last_attempts(eids)

    def reserve(self, eids: list[int]) -> bool:
        return self._lost is None and reserve(self._dispatch, self, eids)

    def unreserve(self, eids: list[int]) -> None:
        unreserve(self._dispatch, self, eids)

    def retire(self, settling: SettlementRequest, eids: list[int], seqs: list[int]) -> Settlement | None:
        if self._lost is not None:
            return None
        return retire(self._context, self._dispatch, self, settling, eids, seqs)

    @property
    def position(self) -> int:
        state = self._dispatch.state
        again = state.returned.at_or_above(0)
        return min(again[0], state.position) if again is not None else state.position

    def _leave(self) -> None:
        self._dispatch.leave(self)
