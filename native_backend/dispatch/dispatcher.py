"""One durable or queue at work: who has which event, who gets the next, what became of it.

Competing links share one `Dispatcher`: a link that asks gets the next events. Returned events go first, lowest EID
first. Those whose bytes have left the store's window are re-read on the worker thread, and nothing above them is given
meanwhile; only when that fails may others overtake them until the next attempt. An event that a link wanted to go
`undeliverable_here` is not offered to that link again while it lives.

An EID is at any time in exactly one place: not given yet (at or above `position`), outstanding at a link, in the
journal's hands, returned, delayed (returned, but not to be given yet), or terminal.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

from native_backend.dispatch.backlog import Backlog
from native_backend.dispatch.context import LASTING, RealmContext, ask_first_eid, subscribe_answer
from native_backend.dispatch.dead_letters import DeadLetterCopy, dead_letter_node
from native_backend.dispatch.next_events import EventPicker
from native_backend.dispatch.redelivery_delay import with_redelivery_delay
from native_backend.dispatch.retention_loss import lose_below
from native_backend.dispatch.selecting_consumers import SelectingConsumers, unowned_runs
from native_backend.events.batch import BatchBuilder, DeliveryBatch
from native_backend.events.chunk import Chunk
from native_backend.events.wait_list import WaitList, Wake
from native_backend.journal.settlement import ENDS, Settlement, SettlementRequest, Unit, settlements_of
from native_backend.log.port import Failure
from native_backend.nodes.answers import Settled
from native_backend.nodes.attempts import last_attempts
from native_backend.nodes.durable import Durable
from native_backend.nodes.node import Node
from native_backend.nodes.words import SubscribeAnswer
from native_backend.state.ack_state import AckState, Run, remove_all
from native_backend.state.consumer import Consumer
from native_backend.state.excluded import Excluded
from native_backend.state.intervals import Intervals
from native_backend.state.outcome_detail import OutcomeDetail

_LOG = logging.getLogger(__name__)
TRUNCATED = "LOG_TRUNCATED"  # the native code of what ends because its store has become shorter


class Dispatcher(Backlog):
    """See the module's docstring."""

    def __init__(
        self, context: RealmContext, node: Node, durable: Durable, state: AckState, redelivered_below: int
    ) -> None:
        super().__init__(context, node, durable, state, redelivered_below)
        self.away = 0  # events of links that a transaction or the journal has
        self._picker = EventPicker(self)
        self.selecting_consumers = SelectingConsumers(self, self._picker)
        self._wait_list = WaitList(context.wait_lists, self._available)
        state.on_returned = self._notify

    # -- links come and go

    def enter(self, link: Consumer) -> None:
        self.links.append(link)
        if self.window is None:
            self.window = self.context.windows.window(self.current)
            self.cursor = self.window.join(self.state.position)

    def leave(self, link: Consumer) -> None:
        """What the link has and did not settle is to be given again, not counted."""
        for first, last in link.outstanding:
            self.state.requeue(first, last)
        link.outstanding = Intervals()
        self.links.remove(link)
        self._wait_list.drop(link)
        self._excluded.pop(link.link, None)
        self.selecting_consumers.leave(link)
        if self._picker.groups is not None:
            for first, last in self._picker.groups.leave(link):
                self.state.requeue(first, last)
        if not self.links:
            self._leave_window()

    @property
    def is_fetching(self) -> bool:
        """What `take` did not give may still be there: it is read again, or nothing is given at the moment."""
        return self._fetching or self.paused or self._picker.stopped

    def _notify(self) -> None:
        self._wait_list.notify()
        self.selecting_consumers.notify()

    def lose(self, answer: SubscribeAnswer, native: str = "") -> None:
        """No link gets anything any more."""
        for link in self.links[:]:
            link.lose(answer, native)

    def _leave_window(self) -> None:
        if self.window is not None:
            self.window.leave(self.cursor)
            self.window = None
        self.context.windows.keep(self, None)

    # -- giving

    def take(self, link: Consumer, count_max: int, bytes_max: int) -> DeliveryBatch | None:
        if self.paused:
            return None
        if self.state.delayed:
            self.state.wake(self.context.clock.epoch_us() // 1000)
        picker = self._picker
        picker.stopped = False
        returned = picker.has_returned(link)
        if not returned and (self.window is None or self.window.is_at_end(self.cursor)):
            return None  # most links, most turns
        gathering = BatchBuilder(count_max, bytes_max)
        if returned:
            picker.take_returned(link, gathering)
            self.count_repeated(gathering)
        if gathering.room > 0 and not self._fetching:
            picker.take_new(link, gathering)
        return gathering.delivered(self.state.failed, self.redelivered_below)

    def park(self, link: Consumer, wake: Wake) -> bool:
        """It has just taken nothing. False: it is not known when there will be events; ask again."""
        if self._picker.has_kept(link) or self._available():
            return False
        self._wait_list.add(link, wake)
        return True

    def wake(self, link: Consumer) -> None:
        """Something is kept for it."""
        self._wait_list.wake(link)
        self.selecting_consumers.wake(link)

    def _available(self) -> int:
        """How many events there may be for links that wait. With none they are stirred by what comes."""
        many = len(self.links)
        if self.paused or self._fetching or self.window is None or not self.context.gives:
            return many
        if self.state.delayed:
            self.state.wake(self.context.clock.epoch_us() // 1000)
        if self.state.returned:
            return many
        self.cursor.position = self.state.position
        count = self.window.available(self.cursor, many)
        if not count:
            self.window.park(self.cursor, self._wait_list.notify)
            if self.state.delayed:
                self.context.wait_lists.notify_at(self.state.delayed.soonest_ms, self._wait_list)
        return count

    def expire(self, eids: list[int], chunk: Chunk) -> None:
        """These events have expired before a link got them: copy them to the dead letters, if there are any, and end
        them."""
        if not eids:
            return
        runs = unowned_runs(self.state, chunk, eids)
        self._give_up(Settlement(self, None, "expired", False, False, "ttl", runs, len(eids), None), "expired")

    def filter_out(self, eids: list[int], chunk: Chunk) -> None:
        """They are not what this durable is for."""
        runs = unowned_runs(self.state, chunk, eids)
        self.context.journal.add(Settlement(self, None, "filtered", False, False, "selector", runs, len(eids), None))

    # -- settling

    def settle(
        self, link: Consumer, settling: SettlementRequest, eids: list[int], seqs: list[int], owner: object
    ) -> None:
        if not eids:
            self.context.answer(Settled(owner, "done"))
            return
        settlement = self.take_off(link, settling, eids, seqs)
        if settlement is None:
            self.context.answer(Settled(owner, "not-found", "not-outstanding"))
            return
        settlement.owner = owner
        settlement.reserved = False  # no transaction has it any more, whatever comes of it
        if settling.operation == "dead-letter":
            self._give_up(settlement, settling.reason, settling.detail)
        elif settling.failed and self.current.properties.redelivery_delay_ms:
            self._postpone(settlement)
        else:
            self.context.journal.add(settlement)

    def _give_up(self, settlement: Settlement, reason: str, detail: OutcomeDetail | None = None) -> None:
        target = dead_letter_node(self.context.metadata, self.node)
        if target is None:
            self.context.journal.add(settlement)
        else:
            self.context.preparing.add(settlement)
            DeadLetterCopy(self.context, self, self.state, target, self.node, reason, detail).begin(settlement)

    def _postpone(self, settlement: Settlement) -> None:
        now_ms = self.context.clock.epoch_us() // 1000
        parts = with_redelivery_delay(settlement, self.current.properties, self.state.failed, now_ms)
        if len(parts) == 1:
            self.context.journal.add(parts[0])
        else:
            self.context.journal.add_unit(Unit(parts, [], settlement.owner, settles=True))

    def take_off(
        self, link: Consumer, settling: SettlementRequest, eids: list[int], seqs: list[int]
    ) -> Settlement | None:
        """Take events off their link, for a settlement that the caller gives to the journal or restores. None when they
        are not there."""
        runs = self.state.runs(eids, seqs)
        if not remove_all(link.reserved if settling.reserved else link.outstanding, runs):
            return None
        if not settling.reserved:
            self.away += len(eids)
        how = settling.operation, settling.failed, settling.undeliverable_here, settling.cause
        return Settlement(self, link, *how, runs, len(eids), None, reserved=settling.reserved)

    def last_attempts(self, eids: list[int]) -> list[bool] | None:
        """Which of them have but one attempt left."""
        return last_attempts(self.current.properties.attempts, self.state.failed, eids)

    def keys(self) -> tuple[str, str, int]:
        return self.node.name, self.durable.name, self.node.store

    def settled(self, settlement: Settlement) -> None:
        if settlement.link is not None:
            self.away -= settlement.count
        self.state.apply(settlement.operation, settlement.failed, settlement.runs, settlement.not_before_ms)
        if self.node.store in self.context.counted:
            self.context.counted[self.node.store].ended(settlement.operation, settlement.runs)
        self.selecting_consumers.settled(settlement)
        if settlement.undeliverable_here and settlement.link in self.links:
            excluded = self._excluded.setdefault(settlement.link.link, Excluded())
            for first, last, _, _ in settlement.runs:
                excluded.eids.add(first, last)
        elif self._excluded and settlement.operation != "return":
            for excluded in self._excluded.values():
                for first, last, _, _ in settlement.runs:
                    excluded.eids.discard(first, last)

    def _under_way(self) -> Iterator[Settlement]:
        """What was asked for and is not in the journal yet. Looked for only by who needs it."""
        journal, keys = self.context.journal, self.keys()
        if journal.busy or self.context.preparing:
            waiting = [settlement for item in journal.items() for settlement in settlements_of(item)]
            yield from (entry for entry in (*waiting, *self.context.preparing) if entry.keeper.keys() == keys)

    def ending(self) -> Intervals:
        """What ends as soon as the journal holds it; it is there again if that fails."""
        runs = [run for settlement in self._under_way() if settlement.operation in ENDS for run in settlement.runs]
        return Intervals((first, last) for first, last, _, _ in runs)

    def held(self) -> int:
        """Events that a transaction has, whether or not their links live, or that are being copied to the dead letters.
        The journal gets them behind what it is given now."""
        preparing, keys = self.context.preparing, self.keys()
        given = sum(entry.count for entry in self._under_way() if entry.link is not None and entry not in preparing)
        unowned = sum(entry.count for entry in preparing if entry.link is None and entry.keeper.keys() == keys)
        return self.away - given + unowned

    def is_returning(self, link: Consumer) -> bool:
        """Whether something that link gave back is not there yet."""
        return any(settlement.link is link and settlement.operation == "return" for settlement in self._under_way())

    def restore(self, settlement: Settlement) -> None:
        if settlement.link is not None and not settlement.reserved:
            self.away -= settlement.count
        live = settlement.link in self.links
        for first, last, _, _ in settlement.runs:
            if settlement.reserved:
                settlement.link.reserved.add(first, last)
            elif live:
                settlement.link.outstanding.add(first, last)
            else:
                self.state.requeue(first, last)

    def rest(self, settlement: Settlement, until_ms: int) -> None:
        """The same, but no link gets these events before `until_ms` of the epoch: they could only come back here."""
        if settlement.link is not None:
            self.away -= settlement.count
        for first, last, _, _ in settlement.runs:
            if last >= self.state.low:
                self.state.delayed.add(max(first, self.state.low), last, until_ms)
        self._notify()

    def evict(self, bound: int) -> None:
        """Everything below is given up. What links have of it they may still settle."""
        self.state.evict(bound)
        self._picker.lose_below(self.state.low)
        self._notify()
        self.cursor.position = max(self.cursor.position, self.state.position)

    # -- by command

    def withdraw(self, below: int, runs_max: int, eids_max: int = 2**62) -> list[Run]:
        """Take what lies below that EID and is at no link away, gaps included: in the caller's hands from now on."""
        self._picker.give_back()
        runs = self.state.withdraw(below, runs_max, eids_max)
        self._notify()
        self.cursor.position = self.state.position
        return runs

    def rewind(self, before: int) -> None:
        """The journal has moved the position: no event is outstanding. `before`: where new events were read."""
        self.redelivered_below = max(self.redelivered_below, before)
        self.cursor.position = self.state.position
        self.context.windows.keep(self, None)
        self._excluded.clear()
        self._picker.forget()
        self.selecting_consumers.forget()
        self.moving = False
        self._notify()

    # -- its store has become shorter

    def suspend(self, end: int) -> None:
        """It ends there. A link with something of what is gone ends: what it says of that later must not be taken for
        the events that get those EIDs now."""
        self._suspended = True
        for link in self.links[:]:
            if link.outstanding.at_or_above(end) or link.reserved.at_or_above(end):
                self.away -= link.reserved.count()
                link.reserved.remove_from(end)
                self.away += link.reserved.count()
                link.lose("indeterminate", TRUNCATED)

    def cut(self, end: int) -> None:
        """The journal says so."""
        self._picker.give_back()
        self.state.cut(end)
        self.selecting_consumers.cut(end)
        for excluded in self._excluded.values():
            excluded.eids.remove_from(end)

    def resume(self, end: int) -> None:
        """All that was known of what is gone is forgotten."""
        self.redelivered_below = min(self.redelivered_below, end)
        self.cursor.position = self.state.position
        self.context.windows.keep(self, None)
        self._suspended = False
        self._notify()

    # -- reading

    def read_failed(self, failure: Failure) -> None:
        """A read failed: wait, give up, or go on where the log still has something."""
        if failure.cause == "retention":
            ask_first_eid(self.context, self.node, self.state.position, self._kept)
        elif failure.cause in LASTING:
            self.lose(subscribe_answer(failure), failure.code or failure.cause)
        else:
            _LOG.warning("cannot read node %r now: %s", self.node.name, failure)

    def _kept(self, first: int) -> None:
        lose_below(self.context, self.node, self.durable.name, self.state, first)
        self._picker.lose_below(first)
        self._notify()
        self.cursor.position = self.state.position
