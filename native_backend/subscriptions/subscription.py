"""Subscriptions: what a consuming link holds of the realm.

* queue: competing links share one acknowledgement state;
* durable: the same for the links of one durable; every event is acknowledged by itself;
* plain: from now on, no state in the realm: what its link gives back is given to that link again, while it lives.

`take` sees what had arrived at the last `Realm.poll`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from native_backend.dispatch.context import RealmContext
from native_backend.events.batch import DeliveryBatch
from native_backend.events.log_end import EndSearch
from native_backend.events.selection import Selection
from native_backend.events.wait_list import Wake
from native_backend.journal.settlement import Settlement, SettlementRequest
from native_backend.nodes.answers import Settled
from native_backend.nodes.durable import DurableName
from native_backend.nodes.durable_terms import EXCLUSIVE, DurableTerms
from native_backend.nodes.grants import ANONYMOUS, Subject
from native_backend.nodes.node import Node
from native_backend.nodes.start_position import LATEST, StartPosition
from native_backend.nodes.words import SettleAnswer, SubscribeAnswer
from native_backend.state.intervals import Intervals

Mode = Literal["queue", "plain", "durable", "browse"]


@dataclass(frozen=True, slots=True)
class Subscribe:
    """What is asked for."""

    node: Node
    """The node, or one partition of it."""
    mode: Mode
    """`queue`, `plain`, `durable` or `browse`."""
    durable: str | None
    """A name, for mode durable."""
    link: object
    """Identifies the link: what is not to be given to it again is remembered so."""
    subject: Subject = ANONYMOUS
    """Who asks."""
    terms: DurableTerms = EXCLUSIVE
    """Of a durable: shared or not, and how long it outlives its links."""
    selection: Selection | None = None
    """Which events it wants; of a durable, `terms.selector` is its text."""
    start: StartPosition = LATEST
    """Of a channel; a durable that is known goes on where it is."""
    only_here: bool = False
    """A durable of that name on another node is given up for this one, unless it has links."""
    names: DurableName | None = None
    """Where the durable may have an earlier name, too."""
    owned: bool = False
    """The durable belongs to the user who made it, or else to the realm."""


class Subscription(ABC):
    """Common to all modes. `close` may be called at any time, also after a loss, and more than once."""

    node: Node
    """The node that it reads."""
    mode: Mode
    """As it was asked for."""
    durable: str | None
    """The durable's name, of mode durable."""
    journaled: bool
    """Modes queue and durable: what is settled is in the journal."""
    looking: bool
    """`take` gave nothing, but has not looked at all that is here: the link is not drained yet."""

    def __init__(
        self, context: RealmContext, request: Subscribe, owner: object, closed: Callable[[Subscription], None]
    ) -> None:
        self.node = request.node
        self.mode = request.mode
        self.durable = request.durable
        self.terms = request.terms
        self.link = request.link
        self.subject, self.owned = request.subject, request.owned
        self.owner = owner
        self.on_released: Callable[[], None] | None = None
        self.wants_more = False
        self.journaled = request.mode in ("queue", "durable")
        self.selecting = request.selection.text if request.selection is not None else ""
        self.outstanding = Intervals()
        self.reserved = Intervals()
        self.looking = False
        self._lost: SubscribeAnswer | None = None
        self._open = True
        self._context = context
        self._search = EndSearch(context.ends, request.node)
        self._closed = closed

    @abstractmethod
    def take(self, count_max: int, bytes_max: int) -> DeliveryBatch | None:
        """Events for this link now, at most that many; None if there are none ready."""

    def is_searched(self) -> bool:
        """After `take` gave nothing: there is nothing, and when it was first asked so there was nothing more in the
        log either. False: ask again when `take` has given nothing again."""
        return not self.looking and self._search.is_over(self.reached)

    def search_anew(self) -> None:
        """The next time that is asked is another first one."""
        self._search.begin_anew()

    @property
    def reached(self) -> int:
        """The first EID that it has not seen."""
        return self.position

    def park(self, wake: Wake) -> bool:
        """After `take` gave nothing: call `wake` once, out of `poll`, when it may give something. False: it is not
        known when; ask again next turn."""
        return False

    @abstractmethod
    def settle(self, settling: SettlementRequest, eids: list[int], seqs: list[int], owner: object) -> None:
        """Answered by `Settled` once the journal holds it; at once where it is not `journaled`. `owner` None: no
        answer is wanted. Only what `take` gave this link, and once. Mode plain takes `return` only."""

    def waiting(self) -> int | None:
        """How many stored messages it was not given yet and could be given now. None: of this mode the durable counts
        them, or it is not known, as where a selector decides."""
        return None

    def forget(self, eids: list[int]) -> None:  # noqa: B027  # most keep nothing
        """The link has dealt with what it was given, and nothing of that is `journaled`."""

    def last_attempts(self, eids: list[int]) -> list[bool] | None:
        """Of which events one more failed attempt would be the last that their node allows; None: of none."""
        return None

    def reserve(self, eids: list[int]) -> bool:
        """For a transaction: they are neither outstanding nor given to another link, whether or not this link lives.
        False where they are not outstanding."""
        return False

    @abstractmethod
    def unreserve(self, eids: list[int]) -> None:
        """As outstanding as before; available again where the link has gone."""

    def retire(self, settling: SettlementRequest, eids: list[int], seqs: list[int]) -> Settlement | None:
        """As `settle` of what is reserved, for `NativeRealm.commit`. None where that cannot be done: not reserved, or
        lost."""
        return None

    @property
    @abstractmethod
    def position(self) -> int:
        """The first EID that it has not given out, or that is to be given again."""

    def close(self) -> None:
        """What is outstanding becomes available again, not counted as a failed attempt."""
        if self._open:
            self._open = False
            if self._lost is None:
                self._leave()
            self._closed(self)

    def release(self) -> None:
        """The scope has ended that the terms of its durable name: the link, its session or its connection."""
        released, self.on_released = self.on_released, None
        if released is not None:
            released()

    def lose(self, answer: SubscribeAnswer, native: str) -> None:
        """It gives nothing any more; its owner gets the answer. It may have been lost before."""
        if self._lost is None:
            self._lost = answer
            self._leave()
            self._context.answer(SubscriptionLost(self.owner, self, answer, native))

    def revoke(self, native: str, answer: SubscribeAnswer = "access-denied") -> None:
        """Its subject may not have it any more, or not so. What it has outstanding becomes available again."""
        if self._open:
            self.lose(answer, native)

    @abstractmethod
    def _leave(self) -> None:
        """Give up what this mode holds of the realm; called once, when it is closed or lost."""


@dataclass(frozen=True, slots=True)
class Subscribed:
    """Answer to `subscribe`: `subscription` is None unless the answer is ready."""

    owner: Any
    subscription: Subscription | None
    answer: SubscribeAnswer
    native: str = ""


@dataclass(frozen=True, slots=True)
class SubscriptionLost:
    """A subscription failed later: its node was deleted (not-found), its shard was claimed by another gateway
    (in-use), ... It gives no more events; what it has outstanding need not be settled."""

    owner: Any
    subscription: Subscription
    answer: SubscribeAnswer
    native: str = ""


def unsettled(lost: SubscribeAnswer, owner: object) -> Settled:
    """What settling is answered once the subscription is lost."""
    answer: SettleAnswer = lost if lost in ("not-found", "access-denied") else "unexpected"
    return Settled(owner, answer, lost)
