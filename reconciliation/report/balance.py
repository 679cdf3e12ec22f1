"""The balance sheet: what was published is somewhere, to the last event. Two accounts that must agree, for every node
and durable.

A node: events of which publishers have an answer, plus those without one, must be what the store holds plus what it no
longer keeps. A durable: the events since its start must be ended, available, skipped or lost. Both sides come from
different topics. The nodes are those that ever accepted a message, whether their topics are there or not; what was
accepted in a node that was deleted is a number of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from reconciliation.jobs.reconcile import Judgement
from reconciliation.model.realm_nodes import Durable
from reconciliation.read.standing import Place
from reconciliation.transforms.durables import EARLY
from reconciliation.transforms.verdicts import DOUBLED, IN_FLIGHT, OVERWRITTEN, UNPROVEN


@dataclass(frozen=True, slots=True)
class NodeBalance:
    """Events of one store of a node. Left: accepted + untold + copied + anomalies (signed) + older + native + unproven.
    Right: stored + retained out + unread."""

    node: str
    kind: str
    accepted: int
    indeterminate: int  # found in the store; the publisher had no answer, or *unknown*
    in_flight: int
    copied: int  # by the realm itself: dead letters and moved events (which of them should be there: A7)
    anomalies: int  # P2 + P3 + P4 - P1, and doubled records
    older: int  # of whose publishing the evidence was trimmed
    native: int  # of plain producers, in a topic that the node adopted
    unproven: int  # of whose publishing the evidence is missing
    stored: int
    retained_out: int
    unread: int  # answered stored where it could not be looked
    part: str = ""  # the partition or level of its node, where that has several

    @property
    def difference(self) -> int:
        recorded = self.accepted + self.indeterminate + self.in_flight + self.copied + self.anomalies + self.older
        return recorded + self.native + self.unproven - self.stored - self.retained_out - self.unread


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
    early: int  # ended, says the journal, before they were stored
    retained_out: int  # lost by retention before they were ended
    part: str = ""

    @property
    def difference(self) -> int:
        ended = self.acknowledged + self.discarded + self.dead_lettered + self.expired + self.evicted
        ended += self.filtered + self.moved + self.purged
        return self.entitled - ended - self.available - self.skipped - self.early - self.retained_out


@dataclass(frozen=True, slots=True)
class Balance:
    nodes: list[NodeBalance]
    durables: list[DurableBalance]
    deleted: int  # publishes accepted in nodes that were deleted by command, as the journal says
    temporary: int  # publishes accepted in temporary nodes that have ended

    @property
    def difference(self) -> int:
        of_nodes = sum(abs(node.difference) for node in self.nodes)
        return of_nodes + sum(abs(durable.difference) for durable in self.durables)

    @property
    def unseen(self) -> int:
        """Events and publishes that could not be compared with anything."""
        return sum(node.unread + node.unproven for node in self.nodes)


Key = tuple[str, int | None, str | None]
"""Class, store, durable."""
_SIGNS = {"P2": 1, "P3": 1, "P4": 1, "P1": -1, DOUBLED: -1, OVERWRITTEN: -1}
_IN_THE_BOOKS = ("read", "lost", "unseen")


def balance(judgement: Judgement, totals: Mapping[Key, int]) -> Balance:
    """`totals`: findings of all time, counted; P5 only where the log holds the delivery."""
    by_store: Counter[tuple[str, int | None]] = Counter()
    for (code, store, durable), count in totals.items():
        if not (code in ("P5", UNPROVEN) and durable):  # a settlement is not an event
            by_store[code, store] += count
    parts = judgement.catalog.parts
    nodes = [
        replace(_node(judgement, by_store, place), part=parts.get(place.store, ""))
        for place in judgement.places.values()
        if place.standing in _IN_THE_BOOKS
    ]
    durables = [
        replace(_durable(judgement, totals, state.durable), part=parts.get(state.durable.store, ""))
        for state in judgement.catalog.durables
    ]
    deleted, temporary = (
        sum(place.accepted for place in judgement.places.values() if place.standing == standing)
        for standing in ("deleted", "ended")
    )
    return Balance(sorted(nodes, key=lambda row: (row.node, len(row.part), row.part)), durables, deleted, temporary)


def _node(judgement: Judgement, by_store: Mapping[tuple[str, int | None], int], place: Place) -> NodeBalance:
    store = place.store
    return NodeBalance(
        place.node,
        place.kind,
        place.accepted,
        by_store["P5", store],
        by_store[IN_FLIGHT, store],
        judgement.copies.get(store, 0),
        sum(sign * by_store[code, store] for code, sign in _SIGNS.items()),
        judgement.base.older.get(store, 0) if judgement.base is not None else 0,
        judgement.native.get(store, 0),
        by_store[UNPROVEN, store],
        judgement.counts.get((store, None), {}).get("events", 0),
        judgement.trimmed.get((store, None), {}).get("publishes", 0),
        judgement.unseen.get(store, 0),
    )


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
        fates.get(EARLY, 0),
        totals.get(("S1", *place), 0),
    )
