"""Work of several links that is done as a whole or not at all: a unit for the journal, once it is sure that every
node is there.

May import: the standard library, `native_backend` below it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from native_backend.answers import CommitAnswer, Committed, SettleAnswer
from native_backend.log import Write
from native_backend.nodes import Node
from native_backend.services import Services
from native_backend.settlement import Settlement, Unit


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
        self, services: Services, settlements: list[Settlement], postings: Sequence[Posting], owner: object
    ) -> None:
        self._services, self._postings, self._owner = services, postings, owner
        self._waiting = settlements  # to be prepared
        self._ready: list[Settlement] = []

    def begin(self) -> None:
        if not self._all_there():
            self._fail("not-found", "deleted")
            return
        self._prepare()

    def _all_there(self) -> bool:
        metadata = self._services.metadata
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
        self._services.journal.add_unit(Unit(self._ready, writes, self._owner))

    def _prepared(self, result: list[Settlement] | SettleAnswer) -> None:
        if isinstance(result, list):
            self._ready += result
            self._prepare()
        else:
            self._fail("not-found" if result == "not-found" else "unexpected", "dead letters")

    def _fail(self, answer: CommitAnswer, native: str) -> None:
        for settlement in [*self._ready, *self._waiting]:
            settlement.keeper.restore(settlement)
        count = sum(len(posting.keys) for posting in self._postings)
        self._services.answer(Committed(self._owner, answer, [-1] * count, native))
