"""One durable or queue at work: who has which event, who gets the next, what became of it.

Competing links share one `Dispatch`; whoever asks gets. Returned events go first, lowest EID first. Those whose bytes
have left the store's window are re-read on the control thread, and nothing above them is given meanwhile; only when
that fails may others overtake them until the next attempt.
An event that a link wanted to go `elsewhere` is not offered to that link again while it lives.

An EID is at any time in exactly one place: not given yet (at or above `position`), outstanding at a link, in the
journal's hands, returned, delayed (returned, but not to be given yet), or terminal.
May import: the standard library, `native_backend` below it.
"""

from __future__ import annotations

import logging

from native_backend.acknowledgement import Acknowledgement, Run, Standing, remove_all
from native_backend.answers import Settled, SubscribeAnswer
from native_backend.barred import Barred
from native_backend.dead_letters import Burial, dead_letter_node
from native_backend.delivery import Delivered, Gathering
from native_backend.durables import Durable
from native_backend.feed import Chunk, Cursor, Feed, chunk_of
from native_backend.giving import Giving
from native_backend.intervals import Intervals
from native_backend.link import Link
from native_backend.lobby import Waiting, Wake
from native_backend.log import Failure, LogError, Records
from native_backend.losses import lose_below
from native_backend.nodes import Node
from native_backend.postponing import postponed
from native_backend.services import LASTING, Services, bounded, subscribe_answer
from native_backend.settlement import Settlement, Settling, Unit
from native_backend.sifters import Sifters, unowned_runs

_LOG = logging.getLogger(__name__)


class Dispatch:
    """See the module's docstring."""

    def __init__(
        self, services: Services, node: Node, durable: Durable, state: Acknowledgement, again_below: int
    ) -> None:
        self.node = node
        self.durable = durable
        self.state = state
        self.again_below = again_below  # EIDs below may have been given by a process that was killed
        self.links: list[Link] = []
        self.paused = False  # its place is being moved
        self.services = services
        self.feed: Feed | None = None
        self.cursor = Cursor(state.position)
        self._fetching = False
        self._retry_s = 0.0  # no fetch before
        self._elsewhere: dict[object, Barred] = {}  # by `Link.link`
        self._giving = Giving(self)
        self.sifters = Sifters(services, self, self._giving, self.unreadable)
        self._waiting = Waiting(services.lobby, self._offer)
        state.on_returned = self._stir

    # -- links come and go

    def enter(self, link: Link) -> None:
        self.links.append(link)
        if self.feed is None:
            self.feed = self.services.feeds.feed(self.current)
            self.cursor = self.feed.join(self.state.position)

    def leave(self, link: Link) -> None:
        """What the link has and did not settle is to be given again, not counted."""
        for first, last in link.outstanding:
            self.state.again(first, last)
        link.outstanding = Intervals()
        self.links.remove(link)
        self._waiting.drop(link)
        self._elsewhere.pop(link.link, None)
        self.sifters.leave(link)
        if self._giving.groups is not None:
            for first, last in self._giving.groups.leave(link):
                self.state.again(first, last)
        if not self.links:
            self._rest()

    def standing(self) -> Standing:
        state, links = self.state, len(self.links)
        numbers = state.low, state.position, state.unsettled, len(state.acked), len(state.returned)
        return Standing(self.node.name, self.durable.name, *numbers, links)

    @property
    def is_fetching(self) -> bool:
        """What `take` did not give may still be there: it is read again, or nothing is given at the moment."""
        return self._fetching or self.paused or self._giving.stopped

    def _stir(self) -> None:
        self._waiting.stir()
        self.sifters.stir()

    @property
    def caught_up(self) -> bool:
        """Somebody looked for more this turn, in vain."""
        return self.feed is not None and self.feed.is_dry(self.cursor)

    def lose(self, answer: SubscribeAnswer, native: str = "") -> None:
        """No link gets anything any more."""
        for link in self.links[:]:
            self.leave(link)
            link.lose(answer, native)

    def _rest(self) -> None:
        if self.feed is not None:
            self.feed.leave(self.cursor)
            self.feed = None
        self.services.feeds.keep(self, None)

    # -- giving

    def take(self, link: Link, count_max: int, bytes_max: int) -> Delivered | None:
        if self.paused:
            return None
        if self.state.delayed:
            self.state.wake(self.services.clock.epoch_us() // 1000)
        giving = self._giving
        giving.stopped = False
        returned = giving.has_returned(link)
        if not returned and (self.feed is None or self.feed.is_dry(self.cursor)):
            return None  # most links, most turns
        gathering = Gathering(count_max, bytes_max)
        if returned:
            giving.take_returned(link, gathering)
            self.sifters.count_repeated(gathering)
        if gathering.room > 0 and not self._fetching:
            giving.take_new(link, gathering)
        return gathering.delivered(self.state.failed, self.again_below)

    def park(self, link: Link, wake: Wake) -> bool:
        """It has just taken nothing. False: nobody can tell when there will be something; ask again."""
        if self._giving.has_kept(link) or self._offer():
            return False
        self._waiting.add(link, wake)
        return True

    def wake(self, link: Link) -> None:
        """Something is kept for it."""
        self._waiting.wake(link)
        self.sifters.wake(link)

    def _offer(self) -> int:
        """How many events there may be for links that wait. With none they are stirred by what comes."""
        many = len(self.links)
        if self.paused or self._fetching or self.feed is None or not self.services.lease.held:
            return many
        if self.state.delayed:
            self.state.wake(self.services.clock.epoch_us() // 1000)
        if self.state.returned:
            return many
        self.cursor.position = self.state.position
        count = self.feed.at_hand(self.cursor, many)
        if not count:
            self.feed.park(self.cursor, self._waiting.stir)
            if self.state.delayed:
                self.services.lobby.stir_at(self.state.delayed.soonest_ms, self._waiting)
        return count

    def expire(self, eids: list[int], chunk: Chunk) -> None:
        """Their time is over, whoever might have had them: to the dead letters, or nowhere."""
        if not eids:
            return
        runs = unowned_runs(self.state, chunk, eids)
        self._give_up(Settlement(self, None, "expired", False, False, "ttl", runs, len(eids), None), "expired")

    def barred(self, link: Link) -> Barred | None:
        """What that link wanted to go elsewhere."""
        return self._elsewhere.get(link.link)

    def bars(self, link: Link, eid: int) -> bool:
        barred = self._elsewhere.get(link.link)
        return barred is not None and eid in barred.eids

    # -- settling

    def settle(self, link: Link, settling: Settling, eids: list[int], seqs: list[int], owner: object) -> None:
        if not eids:
            self.services.answer(Settled(owner, "done"))
            return
        settlement = self.take_off(link, settling, eids, seqs)
        if settlement is None:
            self.services.answer(Settled(owner, "not-found", "not outstanding"))
            return
        settlement.owner = owner
        settlement.held = False  # no transaction has it any more, whatever comes of it
        if settling.operation == "dead-letter":
            self._give_up(settlement, settling.reason)
        elif settling.failed and self.current.properties.redelivery_delay_ms:
            self._postpone(settlement)
        else:
            self.services.journal.add(settlement)

    def _give_up(self, settlement: Settlement, reason: str) -> None:
        target = dead_letter_node(self.services.metadata, self.node)
        if target is None:
            self.services.journal.add(settlement)
        else:
            Burial(self.services, self, self.state, target, self.node, reason).begin(settlement)

    def _postpone(self, settlement: Settlement) -> None:
        now_ms = self.services.clock.epoch_us() // 1000
        parts = postponed(settlement, self.current.properties, self.state.failed, now_ms)
        if len(parts) == 1:
            self.services.journal.add(parts[0])
        else:
            self.services.journal.add_unit(Unit(parts, [], settlement.owner, settles=True))

    def take_off(self, link: Link, settling: Settling, eids: list[int], seqs: list[int]) -> Settlement | None:
        """For a settlement that somebody will give to the journal, or restore. None when it is not there."""
        runs = self.state.runs(eids, seqs)
        if not remove_all(link.held if settling.held else link.outstanding, runs):
            return None
        how = settling.operation, settling.failed, settling.elsewhere, settling.cause
        return Settlement(self, link, *how, runs, len(eids), None, held=settling.held)

    def last_attempts(self, eids: list[int]) -> list[bool] | None:
        """Which of them have but one attempt left."""
        limit = self.current.properties.attempts
        if not limit:
            return None
        failed = self.state.failed
        ends = [failed.get(eid, 0) + 1 >= limit for eid in eids] if failed or limit == 1 else []
        return ends if any(ends) else None

    @property
    def current(self) -> Node:
        """Properties change while it is open."""
        return self.services.metadata.stores.get(self.node.store, self.node)

    def keys(self) -> tuple[str, str, int]:
        return self.node.name, self.durable.name, self.node.store

    def settled(self, settlement: Settlement) -> None:
        self.state.apply(settlement.operation, settlement.failed, settlement.runs, settlement.not_before_ms)
        if self.node.store in self.services.counted:
            self.services.counted[self.node.store].ended(settlement.operation, settlement.runs)
        self.sifters.settled(settlement)
        if settlement.elsewhere and settlement.link in self.links:
            barred = self._elsewhere.setdefault(settlement.link.link, Barred())
            for first, last, _, _ in settlement.runs:
                barred.eids.add(first, last)
        elif self._elsewhere and settlement.operation != "return":
            for barred in self._elsewhere.values():
                for first, last, _, _ in settlement.runs:
                    barred.eids.discard(first, last)

    def restore(self, settlement: Settlement) -> None:
        live = settlement.link in self.links
        for first, last, _, _ in settlement.runs:
            if settlement.held:
                settlement.link.held.add(first, last)
            elif live:
                settlement.link.outstanding.add(first, last)
            else:
                self.state.again(first, last)

    def evict(self, bound: int) -> None:
        """Everything below is given up. What links have of it they may still settle."""
        self.state.evict(bound)
        self._giving.lose_below(self.state.low)
        self._stir()
        self.cursor.position = max(self.cursor.position, self.state.position)

    # -- by command

    def withdraw(self, below: int, runs_max: int, eids_max: int = 2**62) -> list[Run]:
        """Take what lies below that EID and is at no link away, gaps included: in the caller's hands from now on."""
        self._giving.give_back()
        runs = self.state.withdraw(below, runs_max, eids_max)
        self._stir()
        self.cursor.position = self.state.position
        return runs

    def rewind(self, before: int) -> None:
        """The journal has moved the place: nothing is in anybody's hands. `before`: where new events were read."""
        self.again_below = max(self.again_below, before)
        self.cursor.position = self.state.position
        self.services.feeds.keep(self, None)
        self._elsewhere.clear()
        self._giving.forget()
        self.sifters.forget()
        self.paused = False
        self._stir()

    # -- reading again

    def readable(self, eid: int) -> Chunk | None:
        fetched = self.services.feeds.again(self)
        if fetched is not None and fetched.start <= eid < fetched.end:
            return fetched
        return self.feed.held(eid) if self.feed is not None else None

    def fetch(self, start: int) -> bool:
        """Read again from `start`; True when that, or another such read, is under way."""
        if self._fetching:
            return True
        if self.feed is None or self.services.clock.monotonic_s() < self._retry_s:
            return False
        self._fetching = True
        log, node, count = self.services.log, self.node, self.feed.count
        deadline_s = self.services.limits.control_deadline_s

        def read() -> Records:
            return log.read_range(node.topic, node.partition, start, count, deadline_s)

        def done(records: Records | LogError) -> None:
            self._fetching = False
            if isinstance(records, LogError):
                self._retry_s = self.services.clock.monotonic_s() + self.services.limits.retry_interval_s
                self.unreadable(records.failure)
            elif self.feed is not None:
                ttl_ms, feeds = self.current.properties.ttl_ms, self.services.feeds
                feeds.keep(self, chunk_of(start, records, ttl_ms, feeds.frame))

        self.services.control.submit(read, done)
        return True

    def unreadable(self, failure: Failure) -> None:
        """A read failed: wait, give up, or go on where the log still has something."""
        if failure.cause == "retention":
            bounded(self.services, self.node, self._kept)
        elif failure.cause in LASTING:
            self.lose(subscribe_answer(failure), failure.code or failure.cause)
        else:
            _LOG.warning("cannot read node %r now: %s", self.node.name, failure)

    def _kept(self, first: int) -> None:
        lose_below(self.services, self.node, self.durable.name, self.state, first)
        self._giving.lose_below(first)
        self._stir()
        self.cursor.position = self.state.position
