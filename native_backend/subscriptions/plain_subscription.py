"""A subscription from now on, without a state in the realm: what its link gives back is given to that link again."""

from __future__ import annotations

import logging
from collections.abc import Callable

from native_backend.dispatch.context import LASTING, RealmContext, ask_first_eid, subscribe_answer
from native_backend.events.batch import BatchBuilder, DeliveryBatch
from native_backend.events.chunk import Chunk
from native_backend.events.expiry import stretch
from native_backend.events.selection import SelectionCursor
from native_backend.events.wait_list import Wake
from native_backend.journal.settlement import SettlementRequest
from native_backend.log.port import Failure
from native_backend.nodes.answers import Settled
from native_backend.nodes.attempts import last_attempts
from native_backend.subscriptions.delayed_delivery import DelayedDelivery
from native_backend.subscriptions.subscription import Subscribe, Subscription, unsettled

_LOG = logging.getLogger(__name__)


class PlainSubscription(Subscription):
    """From now on; see `DelayedDelivery` for what it is given again."""

    def __init__(
        self,
        context: RealmContext,
        request: Subscribe,
        owner: object,
        closed: Callable[[Subscription], None],
        position: int,
    ) -> None:
        super().__init__(context, request, owner, closed)
        self._window = context.windows.window(context.metadata.stores.get(self.node.store, self.node))
        self._cursor = self._window.join(position)
        self._cursor.on_cut = self._cut
        self._selection_cursor = (
            SelectionCursor(request.selection, context.scanning) if request.selection is not None else None
        )
        self._later: DelayedDelivery | None = None  # once an event is not due, or was given back
        self._wake: Wake | None = None  # of who parked

    def take(self, count_max: int, bytes_max: int) -> DeliveryBatch | None:
        gathering = BatchBuilder(count_max, bytes_max)
        self.looking = False
        if self._later is not None:
            self._take_due(self._later, gathering)
        while gathering.room > 0 and not self.looking and self._open and self._lost is None:
            chunk = self._window.next(self._cursor)
            if chunk is None:
                break
            if isinstance(chunk, Failure):
                self._read_failed(chunk)
                break
            begin, end = chunk.index(self._cursor.position), len(chunk.eids)
            lives = True
            if chunk.expiries_ms is not None:
                end, lives = stretch(chunk.expiries_ms, begin, end, self._context.clock.epoch_us() // 1000)
            if self._selection_cursor is not None and lives:
                seen = self._selection_cursor.stretch(chunk, begin, end)
                if seen is None:
                    self.looking = True
                    break
                end, lives = seen
            if lives and chunk.marks is not None and chunk.marks.due_ms is not None:
                end, lives = self._due(chunk, chunk.marks.due_ms, begin, end)
                if end == begin:
                    break
            eids = gathering.add(chunk, begin, end) if lives else chunk.eids[begin:end]
            if eids:
                self._cursor.position = eids[-1] + 1
        if gathering.eids:
            self.search_anew()
        return gathering.delivered(self._later.failed if self._later is not None else {}, 0)

    def _due(self, chunk: Chunk, due_ms: list[int], begin: int, end: int) -> tuple[int, bool]:
        """The first part that is all due or all not, and is put off then: where it ends (`begin`: no further now), and
        whether it is due."""
        end, later = stretch(due_ms, begin, end, self._context.clock.epoch_us() // 1000)
        if later and not self._delayed().add(chunk, begin, end):
            end = begin
        return end, not later

    def _delayed(self) -> DelayedDelivery:
        if self._later is None:
            self._later = DelayedDelivery(self._window, self._context.wait_lists, self._context.limits)
        return self._later

    def _take_due(self, delayed: DelayedDelivery, gathering: BatchBuilder) -> None:
        if not self._open or self._lost is not None:
            return
        now_ms = self._context.clock.epoch_us() // 1000
        failure = delayed.take(gathering, now_ms)
        self.looking = gathering.room > 0 and delayed.is_due(now_ms)
        if failure is not None:
            self._read_failed(failure)

    def park(self, wake: Wake) -> bool:
        if self.looking:
            return False
        if self._lost is None and self._window.available(self._cursor, 1):
            return False
        if self._lost is None and self._later is not None:
            self._later.park(wake)
        if self._lost is None:
            self._wake = wake
            self._window.park(self._cursor, wake)
        return True

    def settle(self, settling: SettlementRequest, eids: list[int], seqs: list[int], owner: object) -> None:
        """What is returned is given to this link again, unless it has gone. Nothing else can be settled."""
        if self._lost is not None:
            self._context.answer(unsettled(self._lost, owner))
            return
        if settling.operation != "return":
            self._context.answer(Settled(owner, "not-found", "not-outstanding"))
            return
        eids = [eid for eid in eids if eid < self._cursor.position]  # the store has lost others since they were given
        if self._open and eids:
            self._delayed().give_back(eids, settling.failed, self._context.clock.epoch_us() // 1000)
            if self._wake is not None:
                self._wake()
        self._context.answer(Settled(owner, "done"))

    def waiting(self) -> int | None:
        events = self._context.events.get((self.node.topic, self.node.partition))
        if events is None or not events.known or self._selection_cursor is not None or self._lost is not None:
            return None
        return events.waiting_from(self._cursor.position, self._context.clock.epoch_us() // 1000)

    def forget(self, eids: list[int]) -> None:
        if self._later is not None:
            self._later.forget(eids)

    def last_attempts(self, eids: list[int]) -> list[bool] | None:
        failed = self._later.failed if self._later is not None else {}
        return last_attempts(self._window.node.properties.attempts, failed, eids)

    def unreserve(self, eids: list[int]) -> None:
        """Nothing of it is ever held."""

    @property
    def position(self) -> int:
        return self._cursor.position

    def _read_failed(self, failure: Failure) -> None:
        if failure.cause == "retention":
            ask_first_eid(self._context, self.node, self._cursor.position, self._kept)
        elif failure.cause in LASTING:
            self.lose(subscribe_answer(failure), failure.code or failure.cause)
        else:
            _LOG.warning("cannot read node %r now: %s", self.node.name, failure)

    def _cut(self, end: int) -> None:
        """The store has become shorter; its cursor is not beyond the end any more."""
        if self._later is not None:
            self._later.cut(end)
        self.search_anew()

    def _kept(self, first: int) -> None:
        self._cursor.position = max(self._cursor.position, first)
        if self._later is not None:
            self._later.lose_below(first)

    def _leave(self) -> None:
        if self._later is not None:
            self._later.leave()
            self._later = None
        self._window.leave(self._cursor)
