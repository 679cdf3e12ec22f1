"""Are the events of one link in its store in the order in which the link sent them? `transforms.send_order.edges`, by
columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from reconciliation.summing.hashing import Column
from reconciliation.summing.totals import Key

_COLUMNS = ("sender", "first", "last", "lowest", "highest", "offset", "rising")


class Edges:
    """Of groups of deliveries, from where to where they go."""

    def __init__(self) -> None:
        self._sender_of: dict[Key, int] = {}
        self._batches: list[dict[str, Column]] = []

    def add(self, senders: Sequence[Key | None], offsets: Column, seqs: Column, eids: Column, counts: Column) -> None:
        """`senders`: of each group, (run, link, store); None: it is not of what was stored. `counts`: its deliveries,
        at least one. `seqs` and `eids` are of all groups, one after another."""
        starts = np.cumsum(counts) - counts
        chosen = np.flatnonzero(np.array([sender is not None for sender in senders], bool))
        numbers = [self._sender_of.setdefault(sender, len(self._sender_of)) for sender in senders if sender is not None]
        batch = {
            "first": np.minimum.reduceat(seqs, starts),
            "last": np.maximum.reduceat(seqs, starts),
            "lowest": np.minimum.reduceat(eids, starts),
            "highest": np.maximum.reduceat(eids, starts),
            "offset": offsets,
            "rising": _rising(seqs, eids, starts, counts),
        }
        self._batches.append(
            {"sender": np.array(numbers, np.int64), **{name: column[chosen] for name, column in batch.items()}}
        )

    def merge(self, others: Edges) -> None:
        ours = [self._sender_of.setdefault(sender, len(self._sender_of)) for sender in others._sender_of]
        renumbered = np.array(ours, np.int64)
        for batch in others._batches:
            self._batches.append({**batch, "sender": renumbered[batch["sender"]]})

    def rows(self) -> Iterator[dict[str, Any]]:
        if not self._batches:
            return
        all_of = {name: np.concatenate([batch[name] for batch in self._batches]) for name in _COLUMNS}
        order = np.lexsort((all_of["lowest"], all_of["first"], all_of["sender"]))
        all_of = {name: column[order] for name, column in all_of.items()}
        bounds = np.flatnonzero(np.diff(all_of["sender"], prepend=-1, append=-1))
        senders = [*self._sender_of]
        for start, end in pairwise(bounds.tolist()):
            groups = {name: column[start:end] for name, column in all_of.items()}
            run, link, store = senders[int(groups["sender"][0])]
            in_order = groups["rising"].all() and (groups["lowest"][1:] >= _passed(groups["highest"])).all()
            yield {
                "run": run, "sender": link, "store": store, "in_order": bool(in_order),
                "first": int(groups["first"][0]), "last": int(groups["last"].max()),
                "lowest": int(groups["lowest"].min()), "highest": int(groups["highest"].max()),
                "offset_first": int(groups["offset"].min()), "offset_last": int(groups["offset"].max()),
            }  # fmt: skip


def _passed(highest: Column) -> Column:
    """The highest EID before each group but the first."""
    return np.maximum.accumulate(highest)[:-1]


def _rising(seqs: Column, eids: Column, starts: Column, counts: Column) -> Column:
    """Of each group, whether its EIDs rise as its seqs do."""
    apart = np.ones(len(seqs), bool)
    apart[1:] = seqs[1:] > seqs[:-1]
    apart[starts] = True
    rises = np.ones(len(eids), bool)
    rises[1:] = eids[1:] >= eids[:-1]
    rises[starts] = True
    rising = np.logical_and.reduceat(rises, starts)
    for group in np.flatnonzero(~np.logical_and.reduceat(apart, starts)).tolist():  # seqs that do not rise themselves
        here = slice(int(starts[group]), int(starts[group] + counts[group]))
        by_seq = eids[here][np.lexsort((eids[here], seqs[here]))]
        rising[group] = bool((by_seq[1:] >= by_seq[:-1]).all())
    return rising
