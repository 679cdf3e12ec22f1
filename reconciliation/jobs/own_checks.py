"""What a gateway and a realm may do by themselves, held against the reasons that other records show: group offsets and
snapshots (A9, A10), copies (A7), what came again (A4), the order of what was sent (P6), what expired or was filtered,
evicted or commanded away (S2), what ended for no delivery (A2), stores (S3), capacity (S4), stored tables (G2).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from reconciliation.jobs.evidence import Fates
from reconciliation.model import schemas
from reconciliation.model.acts import Act, laid_to_commands, places, without_command, without_delivery, without_room
from reconciliation.model.ranges import Extent
from reconciliation.model.runs import Numbering, q1
from reconciliation.model.window import Window
from reconciliation.model.withdrawn import Withdrawn
from reconciliation.read import catalog as realm_catalog
from reconciliation.read.catalog import Catalog
from reconciliation.read.group_positions import Held, position_findings
from reconciliation.read.landing import Landed
from reconciliation.read.standing import Place, store_findings
from reconciliation.transforms import decode, durables, given_again, own_acts, recovered, send_order
from reconciliation.transforms.frames import Accounts, Small, local_table


def small_findings(
    catalog: Catalog,
    landed: Landed,
    prefix: str,
    acts: list[Act],
    in_window: list[Act],
    commanded: Withdrawn,
    counts: Fates,
    copied: Mapping[int, int],
    numberings: Iterable[Numbering],
) -> list[dict[str, Any]]:
    """What is found on the driver. `copied`: by store, the copies that it holds. `in_window`: acts of the time that is
    asked for; only these are named."""
    extent = landed.extent
    return [
        *catalog.changed_tables,
        *store_findings(catalog, extent),
        *_positions(catalog, extent, prefix, commanded),
        *_capacities(catalog, counts, copied, commanded),
        *without_delivery(in_window),
        *without_room(in_window, _limited(catalog)),
        *_uncommanded(landed, prefix, acts, in_window, numberings),
    ]


def _positions(catalog: Catalog, extent: Extent, prefix: str, commanded: Withdrawn) -> list[dict[str, Any]]:
    journal = extent.range_of(f"{prefix}.journal")
    whole = journal is not None and extent.unread_of(f"{prefix}.journal") is None
    positions = {(commit.group, commit.topic, commit.partition): commit for commit in extent.positions}
    held = []
    for state in catalog.durables:
        durable, node = state.durable, catalog.nodes[state.durable.store]
        position = positions.get((durable.group, node.topic, node.partition))
        if position is not None:
            place, snapshot = (durable.store, durable.name), state.snapshot
            moved = place in commanded.seeks or place in commanded.cuts
            as_of = snapshot.journal if snapshot else 0
            held.append((Held(durable.node, durable.name, durable.store, state.low, as_of, moved), position))
    return position_findings(held, journal.end if journal is not None and whole else None)


def _limited(catalog: Catalog) -> dict[int, bool]:
    """By store, whether its node has a capacity, where that has not changed."""
    return {
        store: bool(node.properties.capacity_events or node.properties.capacity_bytes)
        for store, node in catalog.nodes.items()
        if node.name not in catalog.known.changed
    }


def _capacities(
    catalog: Catalog, counts: Fates, copied: Mapping[int, int], commanded: Withdrawn
) -> list[dict[str, Any]]:
    """S4 for queues that honour their capacity and hold more messages. Copies are made, and a seek or a shorter store
    gives back what had ended, whether there is room or not: a node of which that is known is not judged."""
    faults, held, stores = [], dict[str, int](), dict[str, int]()
    given_back = {
        catalog.nodes[store].name for store, _ in {*commanded.seeks, *commanded.cuts} if store in catalog.nodes
    }
    unsure = catalog.known.changed | given_back
    for store, node in catalog.nodes.items():
        limited = node.kind == "queue" and node.properties.honour_capacity and node.properties.capacity_events
        if limited and node.name not in unsure and not copied.get(store):
            fates = counts.get((store, "queue"), {})
            held[node.name] = held.get(node.name, 0) + fates.get("available", 0)
            stores.setdefault(node.name, store)
    for name, count in held.items():
        limit = catalog.nodes[stores[name]].properties.capacity_events
        if count > limit:
            text = f"holds {count} messages that were accepted, and honours a capacity of {limit}"
            faults.append({"class": "S4", "node": name, "store": stores[name], "count": count - limit, "detail": text})
    return faults


def _uncommanded(
    landed: Landed, prefix: str, acts: list[Act], in_window: list[Act], numberings: Iterable[Numbering]
) -> list[dict[str, Any]]:
    """Only since a release writes: earlier ones did not record all commands, and wrote no notes into the journal."""
    since = _noted_since(numberings)
    topic, extent = f"{prefix}.commands", landed.extent
    if since is None or extent.unread_of(topic) is not None:
        return []
    laid = laid_to_commands(acts, since)
    if laid and extent.range_of(topic) is None:
        text = f"{topic} is gone, though the journal names commands: restore it from a backup"
        return [q1(None, len({row.cause for row in laid}), None, text)]
    named = laid_to_commands(in_window, since)
    return without_command(named, realm_catalog.commands(landed)) if named else []


def _noted_since(numberings: Iterable[Numbering]) -> int | None:
    """When the first run began that writes notes into the journal, in microseconds since 1970. None: none did."""
    return min(
        (log.at_first for log in numberings if log.recorded is not None and log.at_first is not None), default=None
    )


def copies_compared(
    compared: DataFrame, catalog: Catalog, extent: Extent, prefix: str, stores: Mapping[int, Place]
) -> tuple[dict[int, int], list[tuple[int, str, int, int]]]:
    """Store -> copies that it holds; and the stores that have not what the journal says (`copies.differing`). What is
    missing can be told where nothing of the store was trimmed or hidden, what is too much where the journal is whole
    and did not go on. `compared`: see `copies.compared`."""
    rows = compared.collect()
    sure = catalog.journal_whole and extent.unread_of(f"{prefix}.journal") is None and not extent.journal_growing
    unlike = []
    for store in (row["store"] for row in rows if not row["same"]):
        place = stores.get(store)
        if place is not None and place.standing in ("read", "lost"):
            whole = not catalog.first_kept.get(store, 0) and store not in catalog.hidden
            unlike.append((store, place.node, int(whole), int(sure)))
    return {row["store"]: row["held"] for row in rows}, unlike


def letters_due(catalog: Catalog, counts: Fates, numberings: Iterable[Numbering]) -> list[tuple[int, str, int]]:
    """The stores with dead letters whose node has, and always had, another node for them (`copies.left_out`). Only
    since a release writes where a letter is kept: it writes notes there."""
    since = _noted_since(numberings)
    targets = {node.name: node for node in catalog.nodes.values()}
    due = []
    for (store, _), fates in counts.items():
        node = catalog.nodes.get(store)
        target = targets.get(node.properties.dead_letter) if node is not None else None
        if node is None or target is None or target.name == node.name or node.name in catalog.known.changed:
            continue
        if since is not None and fates.get("dead-letter"):
            due.append((store, target.name, max(node.created_us, target.created_us, since)))
    return sorted({*due})


def row_findings(
    spark: SparkSession, accounts: Accounts, tables: Small, catalog: Catalog, acts: list[Act], folded: DataFrame,
    counts: Fates, window: Window,
) -> list[DataFrame]:  # fmt: skip
    """What Spark finds; empty when it is known already that there is nothing to look at."""
    parts = []
    if any(fates.get(durables.AGAIN) for fates in counts.values()):
        parts.append(durables.again(folded))
    if any(fates.get(durables.UNKNOWN) for fates in counts.values()):
        parts.append(durables.unknown(folded))
    if any(fates.get(recovered.COVERED) for fates in counts.values()):
        parts.append(recovered.covered(folded))
    if any(fates.get(recovered.FORGOTTEN) for fates in counts.values()):
        parts.append(recovered.forgotten(folded))
    ends = decode.terminals(accounts.settled)
    if tables.voids is not None and tables.restarts is not None:
        parts.append(given_again.ended_again(decode.void(ends, tables.voids), tables.restarts))
    returned = places(acts, "return")
    if returned:
        keys = F.broadcast(local_table(spark, returned, schemas.OF_DURABLES))
        returns = accounts.settled.where(F.col("operation") == "return")
        its_ends = ends.join(keys, ["store", "durable"], "left_semi")
        parts.append(given_again.given_back_later(returns, its_ends, tables.restarts))
    expired = {store for store, _ in places(acts, "expired")} & catalog.nodes.keys()
    if expired:
        ttls = [(store, _ttl_ms(catalog, store)) for store in sorted(expired)]
        kept = ends if tables.taken_back is None else decode.standing(ends, tables.taken_back)
        parts.append(own_acts.expired(kept, accounts.events, local_table(spark, ttls, schemas.TTLS)))
    unselected = set(places(acts, "filtered")) & {
        (state.durable.store, state.durable.name) for state in catalog.durables if not state.durable.selector
    }
    if unselected:
        keys = local_table(spark, sorted(unselected), schemas.OF_DURABLES)
        parts.append(own_acts.filtered(accounts.terminals, accounts.events, keys))
    if accounts.has_outcomes:
        parts.append(send_order.regressions(accounts.groups, window.since, window.until))
    return parts


def _ttl_ms(catalog: Catalog, store: int) -> int | None:
    """Of the node; None where it may have been another one."""
    node = catalog.nodes[store]
    return None if node.name in catalog.known.changed else node.properties.ttl_ms
