"""The balance sheet: what was published is somewhere, to the last event. Two accounts that must agree, for every node
and durable.

A node: what publishers were told, plus what nobody was told, must be what the store holds plus what it no longer keeps.
A durable: the events since its start must be ended, available, skipped or lost.
Both sides come from different topics. May import: `reconciliation`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from native_backend.durables import Durable
from reconciliation.jobs.reconcile import Judgement
from reconciliation.tally import Tally
from reconciliation.transforms.verdicts import DOUBLED, IN_FLIGHT, OVERWRITTEN


@dataclass(frozen=True, slots=True)
class NodeBalance:
    """Events of one node. Left: accepted + untold + copied + anomalies (signed) + older. Right: stored + retained
    out."""

    node: str
    kind: str
    accepted: int
    indeterminate: int  # found in the store, though the publisher was told nothing, or that it is unknown
    in_flight: int
    copied: int  # by the realm itself: dead letters, as the journal tells them
    anomalies: int  # P2 + P3 + P4 - P1, and doubled records
    older: int  # of whose publishing the evidence was trimmed
    stored: int
    retained_out: int

    @property
    def difference(self) -> int:
        told = self.accepted + self.indeterminate + self.in_flight + self.copied + self.anomalies + self.older
        return told - self.stored - self.retained_out


@dataclass(frozen=True, slots=True)
class DurableBalance:
    """Events that one durable, or a queue, is entitled to, and what became of each."""

    node: str
    durable: str
    entitled: int
    acknowledged: int
    discarded: int
    dead_lettered: int
    expired: int
    filtered: int  # not what the durable's selector lets through
    evicted: int  # given up because the node was full
    moved: int  # to another node, by command
    purged: int  # or passed over by a seek, by command
    available: int  # or in flight to a consumer
    skipped: int
    retained_out: int  # lost by retention before they were ended

    @property
    def difference(self) -> int:
        ended = self.acknowledged + self.discarded + self.dead_lettered + self.expired + self.evicted
        ended += self.filtered + self.moved + self.purged
        return self.entitled - ended - self.available - self.skipped - self.retained_out


@dataclass(frozen=True, slots=True)
class Balance:
    nodes: list[NodeBalance]
    durables: list[DurableBalance]
    deleted: int  # publishes accepted in nodes that exist no more

    @property
    def difference(self) -> int:
        of_nodes = sum(abs(one.difference) for one in self.nodes)
        return of_nodes + sum(abs(one.difference) for one in self.durables)


Key = tuple[str, int | None, str | None]
"""Class, store, durable."""
_SIGNS = {"P2": 1, "P3": 1, "P4": 1, "P1": -1, DOUBLED: -1, OVERWRITTEN: -1}


def balance(judgement: Judgement, totals: Mapping[Key, int]) -> Balance:
    """`totals`: findings of all time, counted; P5 only where the log holds the delivery."""
    by_store: Counter[tuple[str, int | None]] = Counter()
    for (code, store, durable), count in totals.items():
        if not (code == "P5" and durable):  # a settlement is not an event
            by_store[code, store] += count
    accepted = _accepted(judgement.tallies)
    nodes = [
        NodeBalance(
            node.name,
            node.kind,
            accepted[store],
            by_store["P5", store],
            by_store[IN_FLIGHT, store],
            _copied(judgement, store),
            sum(sign * by_store[code, store] for code, sign in _SIGNS.items()),
            judgement.base.older.get(store, 0) if judgement.base is not None else 0,
            judgement.counts.get((store, None), {}).get("events", 0),
            judgement.trimmed.get((store, None), {}).get("publishes", 0),
        )
        for store, node in judgement.catalog.nodes.items()
    ]
    durables = [_durable(judgement, totals, state.durable) for state in judgement.catalog.durables]
    deleted = sum(count for store, count in accepted.items() if store not in judgement.catalog.nodes)
    return Balance(sorted(nodes, key=lambda one: one.node), durables, deleted)


def _accepted(tallies: Iterable[Tally]) -> Counter[int]:
    accepted: Counter[int] = Counter()
    for one in tallies:
        if one.direction == "publish" and one.answer == "stored" and one.store is not None:
            accepted[one.store] += one.count
    return accepted


def _copied(judgement: Judgement, store: int) -> int:
    """Where a store or the journal has been trimmed, which copies are gone (or were told of) cannot be told: then those
    that are there count."""
    said, held = judgement.copies.get(store, (0, 0))
    return held if judgement.catalog.first_kept.get(store) or judgement.catalog.journal_first else said


def _durable(judgement: Judgement, totals: Mapping[Key, int], durable: Durable) -> DurableBalance:
    place = (durable.store, durable.name)
    fates, gone = judgement.counts.get(place, {}), judgement.trimmed.get(place, {})
    return DurableBalance(
        durable.node,
        durable.name,
        fates.get("events", 0) - fates.get("before", 0) + sum(gone.values()),
        fates.get("acknowledge", 0) + gone.get("acknowledge", 0),
        fates.get("discard", 0),
        fates.get("dead-letter", 0),
        fates.get("expired", 0),
        fates.get("filtered", 0),
        fates.get("evicted", 0) + gone.get("evicted", 0),
        fates.get("move", 0),
        fates.get("purge", 0) + gone.get("purge", 0),
        fates.get("available", 0),
        fates.get("skipped", 0),
        totals.get(("S1", *place), 0),
    )
