"""A link on which a peer consumes from a node of several stores.

What it has sent is known by its *place*, partition and EID in one number, wherever a link of one store knows an EID;
tags and outcome records name the store itself. Dispositions are carried out store by store; all else is
`ConsumingLink`.
May import: `gateway`, `mappings`, `native_backend`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from gateway.consuming import ConsumingLink, SettledBatch, marked
from gateway.engine_links import Outgoing
from gateway.outcomes import LinkFacts, Verdict
from gateway.termini import Terminus
from mappings import Decision, TableSet
from native_backend.answers import Settled
from native_backend.spread import by_partition, eids_of, partition_of, place

if TYPE_CHECKING:
    from gateway.connection import Connection
    from native_backend.delivery import Delivered
    from native_backend.subscription import Subscription

Verdicts = dict[tuple[object, ...], Verdict]


class SpreadConsumingLink(ConsumingLink):
    """See the module's docstring."""

    _faces: Sequence[tuple[LinkFacts, Verdicts]] = ()

    def __init__(
        self, connection: Connection, link: Outgoing, terminus: Terminus, subscription: Subscription, facts: LinkFacts
    ) -> None:
        super().__init__(connection, link, terminus, subscription, facts)
        parts = subscription.node.parts
        self._faces = [(replace(facts, store=part.store), {}) for part in parts]
        self._prefixes = [b"%d:" % part.store for part in parts]

    def use(self, tables: TableSet) -> None:
        super().use(tables)
        for _, verdicts in self._faces:
            verdicts.clear()

    def _send(self, delivered: Delivered) -> None:
        eids, values, partition = delivered.eids, marked(delivered), delivered.partition
        prefix, places = self._prefixes[partition], [place(partition, eid) for eid in eids]
        first_seq = self._house.outcomes.number(len(eids))
        if self._sends_settled:
            self.link.send_settled(prefix, eids, values)
            seqs = list(range(first_seq, first_seq + len(eids)))
            self._carry_out("sent-settled", "sent-settled", True, seqs, places)
        else:
            self.link.send_as(prefix, first_seq, eids, places, values)

    def rules(self, state: str, seqs: list[int], eids: list[int]) -> list[tuple[Decision, list[int], list[int]]]:
        """Store by store."""
        met = []
        for found in by_partition(eids).values():
            met += super().rules(state, [seqs[at] for at in found], [eids[at] for at in found])
        return met

    def _conclude(self, batch: SettledBatch, answer_rule: Decision | None, answer: Settled | None) -> None:
        self.facts, self._verdicts = self._faces[partition_of(batch.eids[0])]
        super()._conclude(replace(batch, eids=eids_of(batch.eids)), answer_rule, answer)

    def _tell_failed(self, decision: Decision, answer: str, native: str, seqs: list[int], eids: list[int]) -> None:
        for partition, found in by_partition(eids).items():
            self.facts, self._verdicts = self._faces[partition]
            some = [seqs[at] for at in found], eids_of([eids[at] for at in found])
            super()._tell_failed(decision, answer, native, *some)
