"""What waits for the journal: settlements of events, and units of several settlements and new events that are stored
all or none.

A settlement is *in the journal's hands* from the moment its events left their link: its holder gives it to the journal
or restores it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from native_backend.log.port import Cause, Write
from native_backend.nodes.answers import Committed
from native_backend.nodes.words import CommitAnswer, Operation, SettleAnswer
from native_backend.state.ack_state import Run
from native_backend.state.outcome_detail import OutcomeDetail

ENDS: Final[tuple[Operation, ...]] = (
    "acknowledge", "discard", "dead-letter", "expired", "filtered", "evicted", "purge", "move"
)  # fmt: skip
"""Operations after which an event is terminal."""


class Keeper(Protocol):
    """Whose state a settlement changes."""

    def keys(self) -> tuple[str, str, int]:
        """Node, durable, store."""
        ...

    def settled(self, settlement: Settlement) -> None:
        """The journal holds it, and `settlement.offsets` says where its writes are."""
        ...

    def restore(self, settlement: Settlement) -> None:
        """The journal will never hold it: the events are as outstanding as before."""
        ...


@dataclass(frozen=True, slots=True)
class SettlementRequest:
    """What is to become of events, and why: one for all that met the same decision."""

    operation: Operation  # acknowledge, return, dead-letter, ...: what a table decided
    failed: bool = False  # it counts as a failed attempt
    undeliverable_here: bool = False  # a returned event is not offered to that link again
    cause: str = "disposition"  # what happened: a disposition, or the end of a link, session or connection
    reason: str = ""  # the state that caused it, for readers of the dead letters
    reserved: bool = False  # of what a transaction holds, not of what is outstanding
    detail: OutcomeDetail | None = None  # what else the consumer stated of them, for the dead letters


@dataclass(slots=True, eq=False)
class Settlement:
    """One `Subscription.settle`. `writes` are stored in the same transaction (a dead letter's copy, a move)."""

    keeper: Keeper
    link: Any
    operation: Operation
    failed: bool
    undeliverable_here: bool
    cause: str
    runs: list[Run]
    count: int
    owner: Any  # None: there is no answer
    writes: list[Write] = field(default_factory=list)
    not_before_ms: int = 0  # since 1970; a returned event is not given before. 0: at once
    to: int = 0  # the store that `writes` go to, for the journal
    prepare: Callable[[Callable[[list[Settlement] | SettleAnswer], None]], None] | None = None
    """Where its writes have to be read first: calls back with what takes its place, or with why there is none."""
    reserved: bool = False  # its events were held for a transaction: restored, they are held again
    offsets: list[int] = field(default_factory=list)  # of `writes`, once stored; -1 where trimmed meanwhile
    refused: Cause | None = None  # why the journal will never hold it, when it is restored


@dataclass(slots=True, eq=False)
class Unit:
    """Settlements and writes that are stored all or none, answered by one `Committed`. The settlements' own owners hear
    nothing. When it failed its settlements are restored."""

    settlements: list[Settlement]
    writes: list[Write]
    owner: Any  # None: there is no answer
    settles: bool = False  # one `Settled` instead: to its owner it is one settlement
    ended: Callable[[Committed], None] | None = None  # called before its owner gets the answer

    def answered(self, answer: CommitAnswer, offsets: list[int], native: str = "") -> Committed:
        """What its owner is answered."""
        committed = Committed(self.owner, answer, offsets, native)
        if self.ended is not None:
            self.ended(committed)
        return committed


def event_writes(items: Iterable[Settlement | Unit]) -> list[Write]:
    """Of a transaction, in the order in which the journal hands out their offsets."""
    writes: list[Write] = []
    for item in items:
        for settlement in settlements_of(item):
            writes += settlement.writes
        if isinstance(item, Unit):
            writes += item.writes
    return writes


def written_bytes(item: Settlement | Unit) -> int:
    """Of the event records that go along, about."""
    return sum(len(write.key or b"") + len(write.value or b"") for write in event_writes([item]))


def settlements_of(item: Settlement | Unit) -> list[Settlement]:
    return item.settlements if isinstance(item, Unit) else [item]


Item = Settlement | Unit


def settled_count(item: Item) -> int:
    """Of the events that it settles."""
    return sum(settlement.count for settlement in settlements_of(item))


def refuse(item: Item, cause: Cause) -> None:
    """The journal will never hold it: its keepers restore what they gave."""
    for settlement in settlements_of(item):
        settlement.refused = cause
        settlement.keeper.restore(settlement)


def is_commit(item: Item) -> bool:
    """It is answered by `Committed`."""
    return isinstance(item, Unit) and item.owner is not None and not item.settles


def separable(items: list[Item]) -> list[list[Item]]:
    """What can fail by itself: each item that writes events or is a unit, and all plain settlements together."""
    plain: list[Item] = [item for item in items if isinstance(item, Settlement) and not item.writes]
    others: list[list[Item]] = [[item] for item in items if isinstance(item, Unit) or item.writes]
    return [plain, *others] if plain else others
