"""Sums of events: `events`, `event_blocks`, `held` (`transforms.sums` says what each is). An event is named by its key
(docs/records.md, *Event key*)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciliation.model.ranges import BITS
from reconciliation.summing.hashing import Column, hashed
from reconciliation.summing.shapes import NotPlainError
from reconciliation.summing.totals import Key, Totals

Row = dict[str, Any]

_OF_GATEWAY: Final = re.compile(r"[13];[a-z][a-z0-9-]*;([0-9a-f]+-[0-9a-f]{4})\Z")
_PARTS: Final = 4
_DIGITS: Final = {"seq": 18, "store": 12, "eid": 18}


class EventSums:
    """Of the events that were added."""

    def __init__(self) -> None:
        columns = {"xor": "xor", "offset_first": "least", "offset_last": "most"}
        self._events, self._event_blocks, self._held = Totals(columns), Totals(columns), Totals({"xor": "xor"})

    def add(self, records: pa.Table) -> None:
        """`records`: topic, partition, offset, key. Raises NotPlainError."""
        records = records.combine_chunks()
        eids = records["offset"].to_numpy()
        places, place_of = _places(records)
        parts = _parts(records["key"])
        runs, run_of, seqs = _runs(parts)
        copies = _copies(parts)
        published = ~copies.is_copy
        labels = [(*place, run) for place in places for run in [None, *runs]]
        label_of = place_of * (len(runs) + 1) + run_of
        spans = {"offset_first": eids, "offset_last": eids}
        self._event_blocks.add(labels, label_of, [eids >> BITS], {"xor": hashed(eids), **spans})
        numbers = np.where(run_of > 0, seqs, eids)[published]
        values = {"xor": hashed(numbers, eids[published])} | {name: spans[name][published] for name in spans}
        self._events.add(labels, label_of[published], [numbers >> BITS], values)
        if not published.all():
            origins = hashed(copies.stores[copies.is_copy], copies.eids[copies.is_copy])
            self._held.add(places, place_of[copies.is_copy], [], {"xor": origins})

    def merge(self, others: EventSums) -> None:
        self._events.merge(others._events)
        self._event_blocks.merge(others._event_blocks)
        self._held.merge(others._held)

    def rows(self) -> Iterator[tuple[str, Iterator[Row]]]:
        """By the name of the sum."""
        yield "events", self._events.rows("topic", "partition", "run", "block")
        yield "event_blocks", self._event_blocks.rows("topic", "partition", "run", "block")
        yield "held", self._held.rows("topic", "partition")


def _places(records: pa.Table) -> tuple[list[Key], Column]:
    """(topic, partition) of the records, and which of them each has."""
    topics = pc.dictionary_encode(records["topic"]).combine_chunks()
    partitions = records["partition"].to_numpy().astype(np.int64)
    both = topics.indices.to_numpy(zero_copy_only=False).astype(np.int64) << 32 | partitions
    distinct, of_each = np.unique(both, return_inverse=True)
    names = topics.dictionary.to_pylist()
    return [(names[both >> 32], both & 0xFFFFFFFF) for both in distinct.tolist()], of_each.astype(np.int64)


class _Parts:
    """The keys that have four parts, split: `rows` says which of all keys these are."""

    def __init__(self, count: int, rows: Column, columns: Mapping[str, pa.Array]) -> None:
        self.count, self.rows, self.columns = count, rows, columns


def _parts(keys: pa.ChunkedArray) -> _Parts:
    try:
        texts = pc.cast(keys, pa.string()).combine_chunks()
    except pa.ArrowInvalid:
        raise NotPlainError from None  # octets that are no text
    if pc.any(pc.match_substring(texts, "\n")).as_py():
        raise NotPlainError  # Java's regular expressions look before the last one
    lists = pc.split_pattern(texts, ";", max_splits=_PARTS)
    has_four = pc.fill_null(pc.greater_equal(pc.list_value_length(lists), _PARTS), False)
    chosen = lists.filter(has_four)
    columns = {str(place): pc.list_element(chosen, place) for place in range(_PARTS)}
    five = pc.greater(pc.list_value_length(chosen), _PARTS)
    rows = np.flatnonzero(has_four.to_numpy(zero_copy_only=False))
    return _Parts(len(keys), rows, {**columns, "goes on": five})


def _runs(parts: _Parts) -> tuple[list[str], Column, Column]:
    """The runs, which of them published each event (from 1 on; 0: none), and the seq of each."""
    columns = parts.columns
    heads = pc.binary_join_element_wise(columns["0"], columns["1"], columns["2"], ";")
    encoded = pc.dictionary_encode(heads)
    matches = [_OF_GATEWAY.match(head) for head in encoded.dictionary.to_pylist()]
    runs = [*dict.fromkeys(match[1] for match in matches if match)]
    number_of = {run: number for number, run in enumerate(runs, 1)}
    run_of_head = np.array([number_of[match[1]] if match else 0 for match in matches], np.int64)
    indices = encoded.indices.to_numpy(zero_copy_only=False)
    of_some = run_of_head[indices] if len(matches) else np.zeros(0, np.int64)
    is_number = _is_number(columns["3"], _DIGITS["seq"])
    run_of, seqs = np.zeros(parts.count, np.int64), np.zeros(parts.count, np.int64)
    run_of[parts.rows] = np.where(is_number, of_some, 0)
    seqs[parts.rows] = _numbers(columns["3"], is_number)
    return runs, run_of, seqs


class _Copied:
    """Which events are copies, and of what."""

    def __init__(self, is_copy: Column, stores: Column, eids: Column) -> None:
        self.is_copy, self.stores, self.eids = is_copy, stores, eids


def _copies(parts: _Parts) -> _Copied:
    columns = parts.columns
    stores, eids = _is_number(columns["1"], _DIGITS["store"]), _is_number(columns["2"], _DIGITS["eid"])
    of_some = pc.equal(columns["0"], "2").to_numpy(zero_copy_only=False) & stores & eids
    is_copy = np.zeros(parts.count, bool)
    is_copy[parts.rows] = of_some
    numbers = []
    for name in ("1", "2"):
        column = np.zeros(parts.count, np.int64)
        column[parts.rows] = _numbers(columns[name], of_some)
        numbers.append(column)
    return _Copied(is_copy, *numbers)


def _is_number(texts: pa.Array, digits: int) -> Column:
    """Of decimal digits of ASCII alone, at most so many."""
    is_decimal = pc.match_substring_regex(texts, rf"\A[0-9]{{1,{digits}}}\z")
    return np.asarray(is_decimal.to_numpy(zero_copy_only=False), bool)


def _numbers(texts: pa.Array, is_number: Column) -> Column:
    """0 where it is none."""
    numbers = pc.if_else(pa.array(is_number), texts, "0")
    return np.asarray(pc.cast(numbers, pa.int64()).to_numpy(zero_copy_only=False), np.int64)
