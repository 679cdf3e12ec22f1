"""Work of several links that is done as a whole or not at all: a unit for the journal, once it is sure that every
node is there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from native_backend.dispatch.context import RealmContext
from native_backend.journal.settlement import Settlement, Unit
from native_backend.log.port import LogError, Write
from native_backend.nodes.answers import Committed
from native_backend.nodes.node import Node
from native_backend.nodes.words import CommitAnswer, SettleAnswer
from native_backend.publish.capacities import Capacities
from native_backend.publish.reservation import Full, Reservation


@dataclass(frozen=True, slots=True)
class Posting:
    """Events for one node, in order; keys and values have equal length."""

    node: Node
    keys: list[bytes]
    values: list[bytes]


class Commit:
    """One commit, from the realm's caller to the journal. Answered by one `Committed`, with the offsets of all postings
    in order; unless it is done, the settlements are restored."""

    def __init__(
        self,
        context: RealmContext,
        capacities: Capacities,
        settlements: list[Settlement],
        postings: Sequence[Posting],
        owner: object,
    ) -> None:
        self._context, self._postings, self._owner = context, postings, owner
        wanted = ((posting.node, len(value)) for posting in postings for value in posting.values)
        self._reservation = Reservation(capacities, wanted)
        self._settlements = self._waiting = settlements  # to be prepared
        self._ready: list[Settlement] = []

    def begin(self) -> None:
        self._context.preparing.update(self._settlements)
        if not self._all_there():
            self._fail("not-found", "deleted")
            return
        self._reservation.begin(self._reserved)

    def _reserved(self, hindrance: Full | LogError | None) -> None:
        if hindrance is None:
            self._prepare()
        elif isinstance(hindrance, Full):
            self._fail("capacity-reached", "capacity-reached", hindrance.node)
        else:
            self._fail("unexpected", hindrance.failure.code or hindrance.failure.cause)

    def _all_there(self) -> bool:
        metadata = self._context.metadata
        stores = [settlement.keeper.keys()[2] for settlement in self._waiting]
        return all(store in metadata.stores for store in stores) and all(
            metadata.alive(posting.node) for posting in self._postings
        )

    def _prepare(self) -> None:
        """Dead letters are read before the unit is written."""
        while self._waiting:
            settlement = self._waiting[0]
            self._waiting = self._waiting[1:]
            if settlement.prepare is not None:
                settlement.prepare(self._prepared)
                return
            self._ready.append(settlement)
        writes = [
            Write(posting.node.topic, posting.node.partition, key, value)
            for posting in self._postings
            for key, value in zip(posting.keys, posting.values, strict=True)
        ]
        self._context.preparing.difference_update(self._settlements)
        self._context.journal.add_unit(Unit(self._ready, writes, self._owner, ended=self._ended))

    def _prepared(self, result: list[Settlement] | SettleAnswer) -> None:
        if isinstance(result, list):
            self._ready += result
            self._prepare()
        else:
            self._reservation.release()
            self._fail("not-found" if result == "not-found" else "unexpected", "dead-letters-not-read")

    def _ended(self, answer: Committed) -> None:
        if answer.answer == "done":
            self._reservation.stored(answer.offsets)
        else:
            self._reservation.release(certain=answer.answer != "indeterminate")

    def _fail(self, answer: CommitAnswer, native: str, node: str = "") -> None:
        self._context.preparing.difference_update(self._settlements)
        for settlement in [*self._ready, *self._waiting]:
            settlement.keeper.restore(settlement)
        count = sum(len(posting.keys) for posting in self._postings)
        self._context.answer(Committed(self._owner, answer, [-1] * count, native, node))
