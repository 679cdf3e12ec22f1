"""Sums of events: `events`, `event_blocks`, `held` (`transforms.sums` says what each is). An event is named by its key
(docs/records.md, *Event key*)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconciliation.model.ranges import EID_BITS, SEQ_BITS
from reconciliation.model.schemas import COPY_KEY, GATEWAY_KEY
from reconciliation.summing.hashing import Column, hashed
from reconciliation.summing.shapes import NotPlainError
from reconciliation.summing.totals import Key, Row, Totals


class EventSums:
    """Of the events that were added."""

    def __init__(self) -> None:
        columns = {"xor": "xor", "offset_first": "least", "offset_last": "most"}
        self._events, self._event_blocks, self._held = Totals(columns), Totals(columns), Totals(columns)

    def add(self, records: pa.Table) -> None:
        """`records`: topic, partition, offset, key. Raises NotPlainError."""
        eids, texts = records["offset"].to_numpy(), _texts(records["key"])
        places, place_of = _places(records)
        runs, run_of, seqs = _runs(texts)
        distinct, label_of = np.unique(place_of * (len(runs) + 1) + run_of, return_inverse=True)
        of_runs = [None, *runs]
        labels = [(*places[label // len(of_runs)], of_runs[label % len(of_runs)]) for label in distinct.tolist()]
        spans = {"offset_first": eids, "offset_last": eids}
        self._event_blocks.add(labels, label_of, [eids >> EID_BITS], {"xor": hashed(eids), **spans})
        is_copy = _matching(texts, COPY_KEY)
        numbers = np.where(run_of > 0, seqs, eids)[~is_copy]
        values = {"xor": hashed(numbers, eids[~is_copy])} | {name: column[~is_copy] for name, column in spans.items()}
        self._events.add(labels, label_of[~is_copy], [numbers >> SEQ_BITS], values)
        stores, origins = map(_numbers, _fields(texts, is_copy, (1, 2)))
        of_copies = {name: column[is_copy] for name, column in spans.items()}
        self._held.add(places, place_of[is_copy], [], {"xor": hashed(stores, origins), **of_copies})

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


def _texts(keys: pa.ChunkedArray) -> pa.Array:
    try:
        return pc.cast(keys, pa.string()).combine_chunks()
    except pa.ArrowInvalid:
        raise NotPlainError from None  # octets that are no text


def _matching(texts: pa.Array, pattern: str) -> Column:
    return np.asarray(
        pc.fill_null(pc.match_substring_regex(texts, pattern), False).to_numpy(zero_copy_only=False), bool
    )


def _fields(texts: pa.Array, chosen: Column, places: Sequence[int]) -> list[pa.Array]:
    """Of the chosen keys, which have them all."""
    split = pc.split_pattern(texts.filter(pa.array(chosen)), ";", max_splits=max(places) + 1)
    return [pc.list_element(split, place) for place in places]


def _numbers(texts: pa.Array) -> Column:
    return np.asarray(pc.cast(texts, pa.int64()).to_numpy(zero_copy_only=False), np.int64)


def _runs(texts: pa.Array) -> tuple[list[str], Column, Column]:
    """The runs, which of them published each event (from 1 on; 0: none), and the seq of each."""
    published = _matching(texts, GATEWAY_KEY)
    names, seqs = _fields(texts, published, (2, 3))
    encoded = pc.dictionary_encode(names)
    run_of, seq_of = np.zeros(len(texts), np.int64), np.zeros(len(texts), np.int64)
    run_of[published] = encoded.indices.to_numpy(zero_copy_only=False) + 1
    seq_of[published] = _numbers(seqs)
    return encoded.dictionary.to_pylist(), run_of, seq_of
