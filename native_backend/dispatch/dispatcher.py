"""One durable or queue at work: who has which event, who gets the next, what became of it.

Competing links share one `Dispatch`: a link that asks gets the next events. Returned events go first, lowest EID first.
Those whose bytes have left the store's window are re-read on the worker thread, and nothing above them is given
meanwhile; only when that fails may others overtake them until the next attempt. An event that a link wanted to go
`elsewhere` is not offered to that link again while it lives.

An EID is at any time in exactly one place: not given yet (at or above `position`), outstanding at a link, in the
journal's hands, returned, delayed (returned, but not to be given yet), or terminal.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

from native_backend.dispatch.backlog import Backlog
from native_backend.dispatch.context import LASTING, RealmContext, bounded, subscribe_answer
from native_backend.dispatch.dead_letters import DeadLetterCopy, dead_letter_node
from native_backend.dispatch.next_events import EventPicker
from native_backend.dispatch.redelivery_delay import postponed
from native_backend.dispatch.retention_loss import lose_below
from native_backend.dispatch.selecting_consumers import SelectingConsumers, unowned_runs
from native_backend.events.batch import Delivered, Gathering
from native_backend.events.chunk import Chunk
from native_backend.events.wait_list import WaitList, Wake
from native_backend.journal.settlement import ENDS, Settlement, Settling, Unit, settlements_of
from native_backend.log.port import Failure
from native_backend.nodes.answers import Settled
from native_backend.nodes.attempts import last_attempts
from native_backend.nodes.durable import Durable
from native_backend.nodes.node import Node
from native_backend.nodes.words import SubscribeAnswer
from native_backend.state.ack_state import Acknowledgement, Run, remove_all
from native_backend.state.consumer import Link
from native_backend.state.excluded import Excluded
from native_backend.state.intervals import Intervals
from native_backend.state.outcome_detail import OutcomeDetail

_LOG = logging.getLogger(__name__)
TRUNCATED = "LOG_TRUNCATED"  # the native code of what ends because its store has become shorter


class Dispatch(Backlog):
    """See the module's docstring."""

    def __init__(
        self, services: RealmContext, node: Node, durable: Durable, state: Acknowledgement, again_below: int
    ) -> None:
        super().__init__(services, node, durable, state, again_below)
        self.away = 0  # events of links that a transaction or the journal has
        self._picker = EventPicker(self)
        self.selecting_consumers = SelectingConsumers(self, self._picker)
        self._waiting = WaitList(services.wait_lists, self._offer)
        state.on_returned = self._notify

    # -- links come and go

    def enter(self, link: Link) -> None:
        self.links.append(link)
        if self.window is None:
            self.window = self.services.windows.window(self.current)
            self.cursor = self.window.join(self.state.position)

    def leave(self, link: Link) -> None:
        """What the link has and did not settle is to be given again, not counted."""
        for first, last in link.outstanding:
            self.state.again(first, last)
        link.outstanding = Intervals()
        self.links.remove(link)
        self._waiting.drop(link)
        self._elsewhere.pop(link.link, None)
        self.selecting_consumers.leave(link)
        if self._picker.groups is not None:
            for first, last in self._picker.groups.leave(link):
                self.state.again(first, last)
        if not self.links:
            self._rest()

    @property
    def is_fetching(self) -> bool:
        """What `take` did not give may still be there: it is read again, or nothing is given at the moment."""
        return self._fetching or self.paused or self._picker.stopped

    def _notify(self) -> None:
        self._waiting.notify()
        self.selecting_consumers.notify()

    def lose(self, answer: SubscribeAnswer, native: str = "") -> None:
        """No link gets anything any more."""
        for link in self.links[:]:
            self.leave(link)
            link.lose(answer, native)

    def _rest(self) -> None:
        if self.window is not None:
            self.window.leave(self.cursor)
            self.window = None
        self.services.windows.keep(self, None)

    # -- giving

    def take(self, link: Link, count_max: int, bytes_max: int) -> Delivered | None:
        if self.paused:
            return None
        if self.state.delayed:
            self.state.wake(self.services.clock.epoch_us() // 1000)
        picker = self._picker
        picker.stopped = False
        returned = picker.has_returned(link)
        if not returned and (self.window is None or self.window.is_dry(self.cursor)):
            return None  # most links, most turns
        gathering = Gathering(count_max, bytes_max)
        if returned:
            picker.take_returned(link, gathering)
            self.count_repeated(gathering)
        if gathering.room > 0 and not self._fetching:
            picker.take_new(link, gathering)
        return gathering.delivered(self.state.failed, self.again_below)

    def park(self, link: Link, wake: Wake) -> bool:
        """It has just taken nothing. False: it is not known when there will be events; ask again."""
        if self._picker.has_kept(link) or self._offer():
            return False
        self._waiting.add(link, wake)
        return True

    def wake(self, link: Link) -> None:
        """Something is kept for it."""
        self._waiting.wake(link)
        self.selecting_consumers.wake(link)

    def _offer(self) -> int:
        """How many events there may be for links that wait. With none they are stirred by what comes."""
        many = len(self.links)
        if self.paused or self._fetching or self.window is None or not self.services.lease.held:
            return many
        if self.state.delayed:
            self.state.wake(self.services.clock.epoch_us() // 1000)
        if self.state.returned:
            return many
        self.cursor.position = self.state.position
        count = self.window.at_hand(self.cursor, many)
        if not count:
            self.window.park(self.cursor, self._waiting.notify)
            if self.state.delayed:
                self.services.wait_lists.notify_at(self.state.delayed.soonest_ms, self._waiting)
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
        self.services.journal.add(Settlement(self, None, "filtered", False, False, "selector", runs, len(eids), None))

    # -- settling

    def settle(self, link: Link, settling: Settling, eids: list[int], seqs: list[int], owner: object) -> None:
        if not eids:
            self.services.answer(Settled(owner, "done"))
            return
        settlement = self.take_off(link, settling, eids, seqs)
        if settlement is None:
            self.services.answer(Settled(owner, "not-found", "not-outstanding"))
            return
        settlement.owner = owner
        settlement.reserved = False  # no transaction has it any more, whatever comes of it
        if settling.operation == "dead-letter":
            self._give_up(settlement, settling.reason, settling.detail)
        elif settling.failed and self.current.properties.redelivery_delay_ms:
            self._postpone(settlement)
        else:
            self.services.journal.add(settlement)

    def _give_up(self, settlement: Settlement, reason: str, detail: OutcomeDetail | None = None) -> None:
        target = dead_letter_node(self.services.metadata, self.node)
        if target is None:
            self.services.journal.add(settlement)
        else:
            self.services.preparing.add(settlement)
            DeadLetterCopy(self.services, self, self.state, target, self.node, reason, detail).begin(settlement)

    def _postpone(self, settlement: Settlement) -> None:
        now_ms = self.services.clock.epoch_us() // 1000
        parts = postponed(settlement, self.current.properties, self.state.failed, now_ms)
        if len(parts) == 1:
            self.services.journal.add(parts[0])
        else:
            self.services.journal.add_unit(Unit(parts, [], settlement.owner, settles=True))

    def take_off(self, link: Link, settling: Settling, eids: list[int], seqs: list[int]) -> Settlement | None:
        """Take events off their link, for a settlement that the caller gives to the journal or restores. None when they
        are not there."""
        runs = self.state.runs(eids, seqs)
        if not remove_all(link.reserved if settling.reserved else link.outstanding, runs):
            return None
        if not settling.reserved:
            self.away += len(eids)
        how = settling.operation, settling.failed, settling.elsewhere, settling.cause
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
        if self.node.store in self.services.counted:
            self.services.counted[self.node.store].ended(settlement.operation, settlement.runs)
        self.selecting_consumers.settled(settlement)
        if settlement.elsewhere and settlement.link in self.links:
            excluded = self._elsewhere.setdefault(settlement.link.link, Excluded())
            for first, last, _, _ in settlement.runs:
                excluded.eids.add(first, last)
        elif self._elsewhere and settlement.operation != "return":
            for excluded in self._elsewhere.values():
                for first, last, _, _ in settlement.runs:
                    excluded.eids.discard(first, last)

    def _under_way(self) -> Iterator[Settlement]:
        """What was asked for and is not in the journal yet. Looked for only by who needs it."""
        journal, keys = self.services.journal, self.keys()
        if journal.busy or self.services.preparing:
            waiting = [settlement for item in journal.items() for settlement in settlements_of(item)]
            yield from (each for each in (*waiting, *self.services.preparing) if each.keeper.keys() == keys)

    def ending(self) -> Intervals:
        """What ends as soon as the journal holds it; it is there again if that fails."""
        runs = [run for each in self._under_way() if each.operation in ENDS for run in each.runs]
        return Intervals((first, last) for first, last, _, _ in runs)

    def is_returning(self, link: Link) -> bool:
        """Whether something that link gave back is not there yet."""
        return any(each.link is link and each.operation == "return" for each in self._under_way())

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
                self.state.again(first, last)

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
        self.again_below = max(self.again_below, before)
        self.cursor.position = self.state.position
        self.services.windows.keep(self, None)
        self._elsewhere.clear()
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
                self.leave(link)
                link.lose("indeterminate", TRUNCATED)

    def cut(self, end: int) -> None:
        """The journal says so."""
        self._picker.give_back()
        self.state.cut(end)
        self.selecting_consumers.cut(end)
        for excluded in self._elsewhere.values():
            excluded.eids.remove_from(end)

    def resume(self, end: int) -> None:
        """All that was known of what is gone is forgotten."""
        self.again_below = min(self.again_below, end)
        self.cursor.position = self.state.position
        self.services.windows.keep(self, None)
        self._suspended = False
        self._notify()

    # -- reading

    def unreadable(self, failure: Failure) -> None:
        """A read failed: wait, give up, or go on where the log still has something."""
        if failure.cause == "retention":
            bounded(self.services, self.node, self.state.position, self._kept)
        elif failure.cause in LASTING:
            self.lose(subscribe_answer(failure), failure.code or failure.cause)
        else:
            _LOG.warning("cannot read node %r now: %s", self.node.name, failure)

    def _kept(self, first: int) -> None:
        lose_below(self.services, self.node, self.durable.name, self.state, first)
        self._picker.lose_below(first)
        self._notify()
        self.cursor.position = self.state.position
