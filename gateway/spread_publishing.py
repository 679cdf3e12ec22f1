"""A link on which a peer publishes to a node of several stores: each message goes to one of them (`gateway.routes`).

A run of messages becomes one batch for each store that it has something for, in order; all else is `PublishingLink`.
May import: `gateway`, `mappings`, `native_backend`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from gateway.engine_incoming import Incoming
from gateway.facts import Transfers
from gateway.outcomes import LinkFacts, Verdict
from gateway.posting import Posted
from gateway.publishing import PublishedBatch, PublishingLink
from gateway.routes import route_of
from mappings import Decision, TableSet
from native_backend.answers import Published

if TYPE_CHECKING:
    from gateway.connection import Connection
    from gateway.relay import RelayLink
    from native_backend.nodes import Node

Verdicts = dict[tuple[int, int, str, str], Verdict]


@dataclass(slots=True, eq=False)
class _Part(PublishedBatch):
    """The messages of a run that go to one store."""

    numbers: Sequence[int] = field(default=())

    def seqs(self, first: int, count: int) -> Sequence[int]:
        return self.numbers[first : first + count]


class SpreadPublishingLink(PublishingLink):
    """See the module's docstring."""

    _faces: Sequence[tuple[LinkFacts, Verdicts]] = ()

    def __init__(
        self, connection: Connection, link: Incoming, node: Node, facts: LinkFacts, relay: RelayLink | None = None
    ) -> None:
        super().__init__(connection, link, node, facts, relay)
        self._parts = node.parts
        self._faces = [(replace(facts, store=part.store), {}) for part in self._parts]
        self._route = route_of(node, facts.number)
        self._first_seq = 0
        self._routes: list[int] = []  # of the run that is here

    def use(self, tables: TableSet) -> None:
        super().use(tables)
        for _, verdicts in self._faces:
            verdicts.clear()

    def on_transfers(self, transfers: Transfers) -> None:
        self._first_seq = self._house.outcomes.next_seq
        self._routes = [*map(self._route, transfers.messages)]
        super().on_transfers(transfers)

    def _spread(self, first_seq: int, count: int) -> dict[int, list[int]]:
        """Which of so many messages of the run go to which store."""
        start = first_seq - self._first_seq
        places: dict[int, list[int]] = {}
        for at, partition in enumerate(self._routes[start : start + count]):
            places.setdefault(partition, []).append(at)
        return places

    def _carry_out(self, batch: PublishedBatch, keys: Sequence[bytes], values: Sequence[bytes]) -> None:
        if batch.decision.then["native"] != "publish":
            super()._carry_out(batch, keys, values)
            return
        spread = self._spread(batch.first_seq, len(keys))
        size_bytes = batch.size_bytes
        for left, (partition, places) in zip(range(len(spread) - 1, -1, -1), spread.items(), strict=True):
            some = [values[at] for at in places]
            size = sum(map(len, some)) if left else size_bytes
            size_bytes -= size
            part = _Part(
                self,
                batch.first_seq,
                batch.presettled,
                batch.decision,
                len(places),
                size,
                batch.tables,
                self._parts[partition],
                [batch.first_seq + at for at in places],
            )
            super()._carry_out(part, [keys[at] for at in places], some)

    def _conclude(
        self,
        batch: PublishedBatch,
        rule: Decision,
        answer_rule: Decision | None,
        seqs: Sequence[int],
        eids: list[int],
        answer: Published | None,
    ) -> None:
        self._turn_to(batch.node)
        super()._conclude(batch, rule, answer_rule, seqs, eids, answer)

    def _turn_to(self, node: Node) -> None:
        """The next verdicts speak of that store."""
        self.facts, self._verdicts = self._faces[node.partition]

    # -- transactions

    def posted_as(
        self, seqs: range, presettled: int, decision: Decision, keys: list[bytes], values: list[bytes]
    ) -> list[Posted]:
        return [
            Posted(
                self,
                [seqs[at] for at in places],
                presettled,
                decision,
                [keys[at] for at in places],
                [values[at] for at in places],
                self.tables,
                self._parts[partition],
            )
            for partition, places in self._spread(seqs[0], len(seqs)).items()
        ]

    def tell(self, rule: Decision, answer_rule: Decision, posted: Posted, answer: Published) -> None:
        self._turn_to(posted.node)
        super().tell(rule, answer_rule, posted, answer)
