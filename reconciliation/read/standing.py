"""How each store stands that ever accepted a message, as outcome records, the journal and the metadata name them.

The books start from these, not from the topics that there are: a node whose topic is gone has lost what it accepted,
unless the journal says that the node was deleted. A durable whose record is gone is named in the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from reconciliation.model.ranges import Extent
from reconciliation.model.realm_nodes import QUEUE, store_id
from reconciliation.model.tally import TERMINAL, Tally
from reconciliation.read.catalog import Catalog

Standing = Literal["read", "lost", "unseen", "deleted", "ended"]
"""read: its events were looked at. lost: they are gone. unseen: they could not be looked at. deleted: by a command that
the journal has. ended: it was a temporary node, and lasted as long as its maker."""


@dataclass(frozen=True, slots=True)
class Place:
    """One store. `why` it was not read, in words; `accepted`: publishes that were answered stored."""

    store: int
    node: str
    kind: str
    standing: Standing
    why: str = ""
    accepted: int = 0


@dataclass(frozen=True, slots=True)
class Mention:
    """What the journal says of a durable, or, under an empty name, of a store: its node's name (unless it only was
    given copies), and when its last deletion (`ended`) and the last entry of another kind were written. Of a durable
    that there is: what the journal says of an earlier one of its name."""

    store: int
    durable: str
    node: str | None
    last: int | None
    ended: int | None


def places(
    catalog: Catalog, extent: Extent, prefix: str, tallies: Iterable[Tally], mentions: Iterable[Mention]
) -> dict[int, Place]:
    """Every store that is, or that something was accepted in, or that the journal speaks of."""
    accepted, names = _accepted(tallies)
    mentioned = list(mentions)
    names = {mention.store: mention.node for mention in mentioned if mention.node} | names
    deleted = {mention.store for mention in mentioned if not mention.durable and mention.ended is not None}
    stores = {*catalog.nodes, *catalog.absent, *accepted, *(mention.store for mention in mentioned)}
    return {
        store: _place(catalog, extent, prefix, store, names.get(store, ""), accepted.get(store, 0), store in deleted)
        for store in sorted(stores)
    }


def _accepted(tallies: Iterable[Tally]) -> tuple[dict[int, int], dict[int, str]]:
    accepted: dict[int, int] = {}
    names: dict[int, str] = {}
    for tally in tallies:
        if tally.direction == "publish" and tally.answer == "stored" and tally.store is not None:
            accepted[tally.store] = accepted.get(tally.store, 0) + tally.count
            names[tally.store] = tally.node or ""
    return accepted, names


def _place(catalog: Catalog, extent: Extent, prefix: str, store: int, name: str, accepted: int, deleted: bool) -> Place:
    node = catalog.nodes.get(store)
    if node is not None:
        return Place(store, node.name, node.kind, "read", "", accepted)
    if store in catalog.absent:
        node, why = catalog.absent[store]
        unseen = extent.unread_of(node.topic, node.partition) is not None
        words = f"node {node.name}, topic {node.topic} partition {node.partition}: {why}"
        return Place(store, node.name, node.kind, "unseen" if unseen else "lost", words, accepted)
    if deleted:
        return Place(store, name, "", "deleted", "", accepted)
    if store in extent.changed or catalog.known.is_temporary(store, name):
        return Place(store, name, "", "ended", "", accepted)
    unread = extent.unread_of(f"{prefix}.realm") or extent.unread_of(f"{prefix}.journal")
    if unread is not None or not catalog.known.records:
        why = unread.words if unread is not None else f"{prefix}.realm holds no record: restore it from a backup"
        return Place(store, name, "", "unseen", f"node {name}, store {store} was not found; {why}", accepted)
    words = f"node {name}, store {store}: it is not in the metadata, and the journal does not say that it was deleted"
    return Place(store, name, "", "lost", words, accepted)


def unseen_findings(
    stores: Iterable[Place], extent: Extent, catalog: Catalog, counts: Mapping[int, int]
) -> list[dict[str, Any]]:
    """Q1 for everything that could not be looked at. `counts`: by store, publishes that could be compared with nothing.
    What was lost with its store is P1, where something is known to have been accepted there."""
    parts = [*catalog.nodes.values(), *(node for node, _ in catalog.absent.values())]
    findings, named = [], set[int]()
    for gap in extent.unread:
        own = [part for part in parts if part.topic == gap.topic and gap.partition in (None, part.partition)]
        named.update(part.store for part in own)
        count = sum(counts.get(part.store, 0) for part in own)
        findings.append(_q1(gap.words, count, own[0].name if own else None, own[0].store if len(own) == 1 else None))
    left = [place for place in stores if place.store not in named and _is_unseen(place)]
    return findings + [_q1(spot.why, counts.get(spot.store, 0), spot.node or None, spot.store) for spot in left]


def store_findings(catalog: Catalog, extent: Extent) -> list[dict[str, Any]]:
    """S3 for each store whose topic is another one than the node was made with, or whose id is not that topic's."""
    findings = []
    for store, (node, why) in catalog.absent.items():
        if extent.topics.get(node.topic, node.topic_id.hex()) not in ("", node.topic_id.hex()):
            text = f"topic {node.topic} partition {node.partition}: {why}"
            findings.append({"class": "S3", "count": 1, "node": node.name, "store": store, "detail": text})
    for store, node in catalog.nodes.items():
        if store != store_id(node.topic_id, node.partition):
            text = f"the metadata gives topic {node.topic} partition {node.partition} the store id of another topic"
            findings.append({"class": "S3", "count": 1, "node": node.name, "store": store, "detail": text})
    return findings


def _is_unseen(place: Place) -> bool:
    return place.standing == "unseen" or (place.standing == "lost" and not place.accepted)


def vanished_durables(
    catalog: Catalog, extent: Extent, stores: Mapping[int, Place], tallies: Iterable[Tally], mentions: Iterable[Mention]
) -> list[dict[str, Any]]:
    """Q1 for each durable of a node that there is, that outcome records, the journal or a snapshot name, and that is
    not in the metadata (or began anew there) though the journal does not say that it was deleted."""
    mentioned = list(mentions)
    ended = {(note.store, note.durable): note.ended for note in mentioned if note.ended is not None}
    lasts = {(note.store, note.durable): note.last for note in mentioned if note.durable and note.last is not None}
    there = {(state.durable.store, state.durable.name) for state in catalog.durables}
    named = {
        *_settled(tallies),
        *(key for key, snapshot in catalog.snapshots.items() if snapshot.journal >= catalog.journal_first),
    }
    lasts |= dict.fromkeys(named - lasts.keys() - there, 0)
    findings = []
    for (store, name), last in sorted(lasts.items()):
        place = stores.get(store)
        if place is None or place.standing != "read" or name.endswith(_VOLATILE) or (place.node, name) in extent.begun:
            continue
        if max(ended.get((store, name), _NEVER), ended.get((store, ""), _NEVER)) + _LATE_US < last:
            what = "an earlier one of that name was" if (store, name) in there else "it is not in the metadata, and was"
            why = f"durable {name} of node {place.node}: {what} not deleted, as far as the journal says"
            findings.append({**_q1(why, 0, place.node, store), "durable": name})
    return findings


_NEVER = -(1 << 62)
_LATE_US = 60_000_000
"""What consumers hold when their durable is deleted may be settled or returned a moment later."""
_VOLATILE = "|volatile"
"""A name that ends so is of a subscription that ends with its last link (docs/records.md): that is noted nowhere."""


def _settled(tallies: Iterable[Tally]) -> set[tuple[int, str]]:
    """The durables that consumers were told to have acknowledged something of. A queue's consumers name none."""
    return {
        (row.store, row.durable or QUEUE)
        for row in tallies
        if row.direction == "subscribe" and row.operation in TERMINAL and row.answer == "done" and row.store is not None
    }


def _q1(why: str, count: int, node: str | None, store: int | None) -> dict[str, Any]:
    compared = f"; {count:,} publishes could be compared with nothing" if count else ""
    return {"class": "Q1", "count": max(1, count), "node": node, "store": store, "detail": f"{why}{compared}"}
