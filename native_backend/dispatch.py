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
from native_backend.expiry import stretch
from native_backend.feed import Chunk, Cursor, Feed, chunk_of
from native_backend.intervals import Intervals, dense_runs
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
        self._services = services
        self._feed: Feed | None = None
        self._cursor = Cursor(state.position)
        self._fetching = False
        self._retry_s = 0.0  # no fetch before
        self._elsewhere: dict[object, Barred] = {}  # by `Link.link`
        self.sifters = Sifters(services, self, self._given, self._expire, self._unreadable)
        self._waiting = Waiting(services.lobby, self._offer)
        state.on_returned = self._waiting.stir

    # -- links come and go

    def enter(self, link: Link) -> None:
        self.links.append(link)
        if self._feed is None:
            self._feed = self._services.feeds.feed(self.current)
            self._cursor = self._feed.join(self.state.position)

    def leave(self, link: Link) -> None:
        """What the link has and did not settle is to be given again, not counted."""
        for first, last in link.outstanding:
            self.state.again(first, last)
        link.outstanding = Intervals()
        self.links.remove(link)
        self._waiting.drop(link)
        self._elsewhere.pop(link.link, None)
        self.sifters.leave(link)
        if not self.links:
            self._rest()

    def standing(self) -> Standing:
        state, links = self.state, len(self.links)
        numbers = state.low, state.position, state.unsettled, len(state.acked), len(state.returned)
        return Standing(self.node.name, self.durable.name, *numbers, links)

    @property
    def caught_up(self) -> bool:
        """Somebody looked for more this turn, in vain."""
        return self._feed is not None and self._feed.is_dry(self._cursor)

    def lose(self, answer: SubscribeAnswer, native: str = "") -> None:
        """No link gets anything any more."""
        for link in self.links[:]:
            self.leave(link)
            link.lose(answer, native)

    def _rest(self) -> None:
        if self._feed is not None:
            self._feed.leave(self._cursor)
            self._feed = None
        self._services.feeds.keep(self, None)

    # -- giving

    def take(self, link: Link, count_max: int, bytes_max: int) -> Delivered | None:
        if self.paused:
            return None
        if self.state.delayed:
            self.state.wake(self._services.clock.epoch_us() // 1000)
        if not self.state.returned and (self._feed is None or self._feed.is_dry(self._cursor)):
            return None  # most links, most turns
        gathering = Gathering(count_max, bytes_max)
        if self.state.returned:
            self._take_returned(link, gathering)
            self.sifters.count_repeated(gathering)
        if gathering.room > 0 and not self._fetching:
            self._take_new(link, gathering)
        return gathering.delivered(self.state.failed, self.again_below)

    def park(self, link: Link, wake: Wake) -> bool:
        """It has just taken nothing. False: nobody can tell when there will be something; ask again."""
        if self._offer():
            return False
        self._waiting.add(link, wake)
        return True

    def _offer(self) -> int:
        """How many events there may be for links that wait. With none they are stirred by what comes."""
        many = len(self.links)
        if self.paused or self._fetching or self._feed is None or not self._services.lease.held:
            return many
        if self.state.delayed:
            self.state.wake(self._services.clock.epoch_us() // 1000)
        if self.state.returned:
            return many
        self._cursor.position = self.state.position
        count = self._feed.at_hand(self._cursor, many)
        if not count:
            self._feed.park(self._cursor, self._waiting.stir)
            if self.state.delayed:
                self._services.lobby.stir_at(self.state.delayed.soonest_ms, self._waiting)
        return count

    def _take_new(self, link: Link, gathering: Gathering) -> None:
        state, cursor = self.state, self._cursor
        cursor.position = state.position  # links with selections may have moved it on
        while gathering.room > 0 and self._feed is not None:
            chunk = self._feed.next(cursor)
            if chunk is None:
                return
            if isinstance(chunk, Failure):
                self._unreadable(chunk)
                return
            begin = chunk.index(state.position)
            if chunk.expiries_ms is not None:
                if self._take_perishable(link, gathering, chunk, begin):
                    return  # a chunk that has perished is enough for one turn
                continue
            eids = gathering.add(chunk, begin, len(chunk.eids))
            if eids:
                self._given(link, chunk, eids)
                state.position = cursor.position = eids[-1] + 1

    def _take_perishable(self, link: Link, gathering: Gathering, chunk: Chunk, at: int) -> bool:
        """New events that live; True when there were others, too."""
        assert chunk.expiries_ms is not None
        now_ms, end = self._services.clock.epoch_us() // 1000, len(chunk.eids)
        expired: list[int] = []
        while at < end and gathering.room > 0:
            stop, lives = stretch(chunk.expiries_ms, at, end, now_ms)
            eids = gathering.add(chunk, at, stop) if lives else chunk.eids[at:stop]
            if not eids:
                break
            if lives:
                self._given(link, chunk, eids)
            else:
                expired += eids
            self.state.position = self._cursor.position = eids[-1] + 1
            at += len(eids)
        self._expire(expired, chunk)
        return bool(expired)

    def _expire(self, eids: list[int], chunk: Chunk) -> None:
        """Their time is over, whoever might have had them: to the dead letters, or nowhere."""
        if not eids:
            return
        runs = unowned_runs(self.state, chunk, eids)
        self._give_up(Settlement(self, None, "expired", False, False, "ttl", runs, len(eids), None), "expired")

    def _take_returned(self, link: Link, gathering: Gathering) -> None:
        returned, barred = self.state.returned, self._elsewhere.get(link.link)
        bound = barred.resume if barred is not None else 0
        skips = self._services.limits.returned_scan  # stretches that this link cannot have now
        while gathering.room > 0 and skips:
            found = returned.at_or_above(bound)
            allowed = found if found is None or barred is None else barred.eids.first_hole(*found)
            if found is None:
                break
            if allowed is None:
                bound, skips = found[1] + 1, skips - 1
                continue
            first, last = allowed
            bound = last + 1
            chunk = self._readable(first)
            if chunk is None:
                if self._fetch(first):
                    return
                skips -= 1
                continue
            last = min(last, chunk.end - 1)
            bound = last + 1
            begin, end = chunk.index(first), chunk.index(last + 1)
            if chunk.expiries_ms is not None and begin < end:
                end, lives = stretch(chunk.expiries_ms, begin, end, self._services.clock.epoch_us() // 1000)
                last = chunk.eids[end - 1]
                bound = last + 1
                if not lives:
                    returned.remove(first, last)
                    self._expire(chunk.eids[begin:end], chunk)
                    continue
            eids = gathering.add(chunk, begin, end)
            if len(eids) < end - begin:  # no room for all
                if not eids:
                    return
                last = eids[-1]
            returned.remove(first, last)
            after = eids[-1] + 1 if eids else first
            if after <= last:  # nothing but gaps
                self.state.cover(after, last)
            self._given(link, chunk, eids)
        if barred is not None:
            barred.resume = 0 if skips else bound  # the next take looks further on

    def _given(self, link: Link, chunk: Chunk, eids: list[int]) -> None:
        runs = dense_runs(eids)
        for first, last in runs:
            link.outstanding.add(first, last)
        if chunk.gaps:
            for first, _ in runs:
                cover = chunk.gaps.get(first)
                if cover is not None:
                    self.state.covers[first] = cover

    # -- settling

    def settle(self, link: Link, settling: Settling, eids: list[int], seqs: list[int], owner: object) -> None:
        if not eids:
            self._services.answer(Settled(owner, "done"))
            return
        settlement = self.take_off(link, settling, eids, seqs)
        if settlement is None:
            self._services.answer(Settled(owner, "not-found", "not outstanding"))
            return
        settlement.owner = owner
        settlement.held = False  # no transaction has it any more, whatever comes of it
        if settling.operation == "dead-letter":
            self._give_up(settlement, settling.reason)
        elif settling.failed and self.current.properties.redelivery_delay_ms:
            self._postpone(settlement)
        else:
            self._services.journal.add(settlement)

    def _give_up(self, settlement: Settlement, reason: str) -> None:
        target = dead_letter_node(self._services.metadata, self.node)
        if target is None:
            self._services.journal.add(settlement)
        else:
            Burial(self._services, self, self.state, target, self.node, reason).begin(settlement)

    def _postpone(self, settlement: Settlement) -> None:
        now_ms = self._services.clock.epoch_us() // 1000
        parts = postponed(settlement, self.current.properties, self.state.failed, now_ms)
        if len(parts) == 1:
            self._services.journal.add(parts[0])
        else:
            self._services.journal.add_unit(Unit(parts, [], settlement.owner, settles=True))

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
        return self._services.metadata.stores.get(self.node.store, self.node)

    def keys(self) -> tuple[str, str, int]:
        return self.node.name, self.durable.name, self.node.store

    def settled(self, settlement: Settlement) -> None:
        self.state.apply(settlement.operation, settlement.failed, settlement.runs, settlement.not_before_ms)
        if self.node.store in self._services.counted:
            self._services.counted[self.node.store].ended(settlement.operation, settlement.runs)
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
        self._waiting.stir()
        self._cursor.position = max(self._cursor.position, self.state.position)

    # -- by command

    def withdraw(self, below: int, runs_max: int, eids_max: int = 2**62) -> list[Run]:
        """Take what lies below that EID and is at no link away, gaps included: in the caller's hands from now on."""
        runs = self.state.withdraw(below, runs_max, eids_max)
        self._waiting.stir()
        self._cursor.position = self.state.position
        return runs

    def rewind(self, before: int) -> None:
        """The journal has moved the place: nothing is in anybody's hands. `before`: where new events were read."""
        self.again_below = max(self.again_below, before)
        self._cursor.position = self.state.position
        self._services.feeds.keep(self, None)
        self._elsewhere.clear()
        self.sifters.forget()
        self.paused = False
        self._waiting.stir()

    # -- reading again

    def _readable(self, eid: int) -> Chunk | None:
        fetched = self._services.feeds.again(self)
        if fetched is not None and fetched.start <= eid < fetched.end:
            return fetched
        return self._feed.held(eid) if self._feed is not None else None

    def _fetch(self, start: int) -> bool:
        """Read again from `start`; True when that, or another such read, is under way."""
        if self._fetching:
            return True
        if self._feed is None or self._services.clock.monotonic_s() < self._retry_s:
            return False
        self._fetching = True
        log, node, count = self._services.log, self.node, self._feed.count
        deadline_s = self._services.limits.control_deadline_s

        def read() -> Records:
            return log.read_range(node.topic, node.partition, start, count, deadline_s)

        def done(records: Records | LogError) -> None:
            self._fetching = False
            if isinstance(records, LogError):
                self._retry_s = self._services.clock.monotonic_s() + self._services.limits.retry_interval_s
                self._unreadable(records.failure)
            elif self._feed is not None:
                ttl_ms, feeds = self.current.properties.ttl_ms, self._services.feeds
                feeds.keep(self, chunk_of(start, records, ttl_ms, feeds.frame))

        self._services.control.submit(read, done)
        return True

    def _unreadable(self, failure: Failure) -> None:
        """A read failed: wait, give up, or go on where the log still has something."""
        if failure.cause == "retention":
            bounded(self._services, self.node, self._kept)
        elif failure.cause in LASTING:
            self.lose(subscribe_answer(failure), failure.code or failure.cause)
        else:
            _LOG.warning("cannot read node %r now: %s", self.node.name, failure)

    def _kept(self, first: int) -> None:
        lose_below(self._services, self.node, self.durable.name, self.state, first)
        self._waiting.stir()
        self._cursor.position = self.state.position
