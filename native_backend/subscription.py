"""Subscriptions: what a consuming link holds of the realm.

* queue: competing links share one acknowledgement state;
* durable: the same for the links of one durable; every event is acknowledged by itself;
* plain: from now on, no state: nothing is settled.

`take` sees what had arrived at the last `Realm.poll`. May import: the standard library, `native_backend` below it.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from native_backend.access import ANONYMOUS, Subject
from native_backend.answers import SettleAnswer, Settled, SubscribeAnswer, SubscriptionLost
from native_backend.delivery import Delivered, Gathering
from native_backend.dispatch import Dispatch
from native_backend.expiry import stretch
from native_backend.feed import Chunk
from native_backend.holding import enlist, hold, unhold
from native_backend.intervals import Intervals
from native_backend.lobby import Wake
from native_backend.log import Failure
from native_backend.log_end import Search
from native_backend.nodes import Node
from native_backend.put_off import PutOff
from native_backend.selection import Selection, Sieve
from native_backend.services import LASTING, Services, bounded, subscribe_answer
from native_backend.settlement import Settlement, Settling
from native_backend.starting import LATEST, Start
from native_backend.terms import EXCLUSIVE, Terms

_LOG = logging.getLogger(__name__)
Mode = Literal["queue", "plain", "durable", "browse"]


@dataclass(frozen=True, slots=True)
class Subscribe:
    """What is asked for. `durable` is a name, for mode durable; `link` identifies the link, for `elsewhere`."""

    node: Node
    mode: Mode
    durable: str | None
    link: object
    subject: Subject = ANONYMOUS
    terms: Terms = EXCLUSIVE
    """Of a durable."""
    selection: Selection | None = None
    start: Start = LATEST
    """Of a channel; a durable that is known goes on where it is."""
    only_here: bool = False
    """A durable of that name on another node is given up for this one, unless it has links."""


class Subscription(ABC):
    """Common to all modes. `close` may be called at any time, also after a loss, and more than once."""

    def __init__(
        self, services: Services, request: Subscribe, owner: object, closed: Callable[[Subscription], None]
    ) -> None:
        self.node = request.node
        self.mode = request.mode
        self.durable = request.durable
        self.terms = request.terms
        self.link = request.link
        self.subject = request.subject
        self.owner = owner
        self.on_released: Callable[[], None] | None = None
        self.hungry = False
        self.selecting = request.selection.text if request.selection is not None else ""
        self.outstanding = Intervals()
        self.held = Intervals()
        self.looking = False  # `take` found nothing, but has not looked at all that is here
        self._lost: SubscribeAnswer | None = None
        self._open = True
        self._services = services
        self._search = Search(services.ends, request.node)
        self._closed = closed

    @abstractmethod
    def take(self, count_max: int, bytes_max: int) -> Delivered | None:
        """Events for this link now, at most that many; None if there are none ready."""

    def is_searched(self) -> bool:
        """After `take` gave nothing: there is nothing, and when it was first asked so there was nothing more in the
        log either. False: ask again when `take` has given nothing again."""
        return not self.looking and self._search.is_over(self._reached)

    def search_anew(self) -> None:
        """The next time that is asked is another first one."""
        self._search.begin_anew()

    @property
    def _reached(self) -> int:
        """The first EID that it has not seen."""
        return self.position

    def park(self, wake: Wake) -> bool:
        """After `take` gave nothing: call `wake` once, out of `poll`, when it may give something. False: it cannot
        be told when; ask again next turn."""
        return False

    @abstractmethod
    def settle(self, settling: Settling, eids: list[int], seqs: list[int], owner: object) -> None:
        """Answered by `Settled` once the journal holds it. Only what `take` gave this link, and once."""

    def last_attempts(self, eids: list[int]) -> list[bool] | None:
        """Of which events one more failed attempt would be the last that their node allows; None: of none."""
        return None

    def hold(self, eids: list[int]) -> bool:
        """For a transaction: they are neither outstanding nor given to anybody, whether or not this link lives. False
        where they are not outstanding."""
        return False

    @abstractmethod
    def unhold(self, eids: list[int]) -> None:
        """As outstanding as before; available again where the link has gone."""

    def enlist(self, settling: Settling, eids: list[int], seqs: list[int]) -> Settlement | None:
        """As `settle` of what is held, for `Realm.commit`. None where that cannot be done: not held, or lost."""
        return None

    @property
    @abstractmethod
    def position(self) -> int:
        """The first EID that it has not given out, or that is to be given again."""

    def close(self) -> None:
        if self._open:
            self._open = False
            if self._lost is None:
                self._leave()
            self._closed(self)

    def release(self) -> None:
        """The scope has ended that the terms of its durable name: the link, its session or its connection."""
        told, self.on_released = self.on_released, None
        if told is not None:
            told()

    def lose(self, answer: SubscribeAnswer, native: str) -> None:
        """It gives nothing any more; its owner is told."""
        self._lost = answer
        self._services.answer(SubscriptionLost(self.owner, self, answer, native))

    def revoke(self, native: str, answer: SubscribeAnswer = "access-denied") -> None:
        """Its subject may not have it any more, or not so. What it has outstanding becomes available again."""
        if self._open and self._lost is None:
            self.lose(answer, native)

    @abstractmethod
    def _leave(self) -> None:
        """Give up what this mode holds of the realm; called once, unless it was lost before."""


class DurableSubscription(Subscription):
    """A link of a queue, or of a durable."""

    def __init__(
        self,
        services: Services,
        request: Subscribe,
        owner: object,
        closed: Callable[[Subscription], None],
        dispatch: Dispatch,
    ) -> None:
        super().__init__(services, request, owner, closed)
        self._dispatch = dispatch
        dispatch.enter(self)
        self._sifter = dispatch.sifters.enter(self, request.selection) if request.selection is not None else None

    def take(self, count_max: int, bytes_max: int) -> Delivered | None:
        if not self._open or self._lost is not None or count_max <= 0 or bytes_max <= 0:
            return None
        if not self._services.lease.held:
            return None
        if self._sifter is None:
            delivered = self._dispatch.take(self, count_max, bytes_max)
            self.looking = self._dispatch.is_fetching
        else:
            delivered = self._sifter.take(count_max, bytes_max)
            self.looking = self._sifter.looking
        self.hungry = delivered is None or len(delivered.eids) < count_max
        if delivered is not None:
            self.search_anew()
        return delivered

    @property
    def _reached(self) -> int:
        return self._dispatch.state.position

    def park(self, wake: Wake) -> bool:
        if self._lost is not None:
            return True
        return self._dispatch.park(self, wake) if self._sifter is None else self._sifter.park(wake)

    def revoke(self, native: str, answer: SubscribeAnswer = "access-denied") -> None:
        if self._open and self._lost is None:
            self._leave()
        super().revoke(native, answer)

    def settle(self, settling: Settling, eids: list[int], seqs: list[int], owner: object) -> None:
        if self._lost is not None:
            answer: SettleAnswer = self._lost if self._lost in ("not-found", "access-denied") else "unexpected"
            self._services.answer(Settled(owner, answer, self._lost))
            return
        self._dispatch.settle(self, settling, eids, seqs, owner)

    def last_attempts(self, eids: list[int]) -> list[bool] | None:
        return self._dispatch.last_attempts(eids)

    def hold(self, eids: list[int]) -> bool:
        return self._lost is None and hold(self, eids)

    def unhold(self, eids: list[int]) -> None:
        unhold(self._dispatch, self, eids)

    def enlist(self, settling: Settling, eids: list[int], seqs: list[int]) -> Settlement | None:
        if self._lost is not None:
            return None
        return enlist(self._services, self._dispatch, self, settling, eids, seqs)

    @property
    def position(self) -> int:
        state = self._dispatch.state
        again = state.returned.at_or_above(0)
        return min(again[0], state.position) if again is not None else state.position

    def _leave(self) -> None:
        self._dispatch.leave(self)


class PlainSubscription(Subscription):
    """From now on."""

    def __init__(
        self,
        services: Services,
        request: Subscribe,
        owner: object,
        closed: Callable[[Subscription], None],
        position: int,
    ) -> None:
        super().__init__(services, request, owner, closed)
        self._feed = services.feeds.feed(services.metadata.stores.get(self.node.store, self.node))
        self._cursor = self._feed.join(position)
        self._sieve = Sieve(request.selection, services.scanning) if request.selection is not None else None
        self._put_off: PutOff | None = None  # once an event is not due

    def take(self, count_max: int, bytes_max: int) -> Delivered | None:
        gathering = Gathering(count_max, bytes_max)
        self.looking = False
        if self._put_off is not None:
            self._take_due(self._put_off, gathering)
        while gathering.room > 0 and self._open and self._lost is None:
            chunk = self._feed.next(self._cursor)
            if chunk is None:
                break
            if isinstance(chunk, Failure):
                self._unreadable(chunk)
                break
            begin, end = chunk.index(self._cursor.position), len(chunk.eids)
            lives = True
            if chunk.expiries_ms is not None:
                end, lives = stretch(chunk.expiries_ms, begin, end, self._services.clock.epoch_us() // 1000)
            if self._sieve is not None and lives:
                found = self._sieve.stretch(chunk, begin, end)
                if found is None:
                    self.looking = True
                    break
                end, lives = found
            if lives and chunk.marks is not None and chunk.marks.due_ms is not None:
                end, lives = self._due(chunk, chunk.marks.due_ms, begin, end)
                if end == begin:
                    break
            eids = gathering.add(chunk, begin, end) if lives else chunk.eids[begin:end]
            if eids:
                self._cursor.position = eids[-1] + 1
        if gathering.eids:
            self.search_anew()
        return gathering.delivered({}, 0)

    def _due(self, chunk: Chunk, due_ms: list[int], begin: int, end: int) -> tuple[int, bool]:
        """The first part that is all due or all not, and is put off then: where it ends (`begin`: no further now), and
        whether it is due."""
        end, later = stretch(due_ms, begin, end, self._services.clock.epoch_us() // 1000)
        if later:
            if self._put_off is None:
                self._put_off = PutOff(self._feed, self._services.lobby, self._services.limits.delayed_ranges)
            if not self._put_off.add(chunk, begin, end):
                end = begin
        return end, not later

    def _take_due(self, put_off: PutOff, gathering: Gathering) -> None:
        if not self._open or self._lost is not None:
            return
        now_ms = self._services.clock.epoch_us() // 1000
        failure = put_off.take(gathering, now_ms)
        self.looking = gathering.room > 0 and put_off.is_due(now_ms)
        if failure is not None:
            self._unreadable(failure)

    def park(self, wake: Wake) -> bool:
        if self.looking:
            return False
        if self._lost is None and self._feed.at_hand(self._cursor, 1):
            return False
        if self._lost is None and self._put_off is not None:
            self._put_off.park(wake)
        if self._lost is None:
            self._feed.park(self._cursor, wake)
        return True

    def settle(self, settling: Settling, eids: list[int], seqs: list[int], owner: object) -> None:
        """A plain subscription has nothing outstanding, so nothing of it can be settled."""
        self._services.answer(Settled(owner, "not-found", "not outstanding"))

    def unhold(self, eids: list[int]) -> None:
        """Nothing of it is ever held."""

    @property
    def position(self) -> int:
        return self._cursor.position

    def lose(self, answer: SubscribeAnswer, native: str) -> None:
        self._leave()
        super().lose(answer, native)

    def _unreadable(self, failure: Failure) -> None:
        if failure.cause == "retention":
            bounded(self._services, self.node, self._kept)
        elif failure.cause in LASTING:
            self.lose(subscribe_answer(failure), failure.code or failure.cause)
        else:
            _LOG.warning("cannot read node %r now: %s", self.node.name, failure)

    def _kept(self, first: int) -> None:
        self._cursor.position = max(self._cursor.position, first)
        if self._put_off is not None:
            self._put_off.lose_below(first)

    def _leave(self) -> None:
        if self._put_off is not None:
            self._put_off.leave()
        self._feed.leave(self._cursor)
