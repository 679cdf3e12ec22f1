"""Sums of outcome records: `runs`, `tallies`, `claims`, `published`, `edges` (`transforms.sums` says what each is)."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Any, Final

import numpy as np

from reconciliation.model.ranges import EID_BITS, EID_SIZE, SEQ_BITS, SEQ_SIZE
from reconciliation.model.schemas import OUTCOME_PARTS
from reconciliation.model.tally import KEYS
from reconciliation.model.window import BEGINNING, END
from reconciliation.summing import shapes
from reconciliation.summing.edges import Edges
from reconciliation.summing.hashing import Column, hashed
from reconciliation.summing.numbered import Numbered
from reconciliation.summing.shapes import BIGINT, NotPlainError
from reconciliation.summing.totals import Key, Row, Totals

_NUMBERS: Final = ("store", "cell", "answer_cell", "presettled")
_OF_GROUP: Final = tuple(name for name in KEYS if name != "digest")
_texts: Final = itemgetter(*(place for place, name in enumerate(_OF_GROUP) if name not in _NUMBERS))
_TALLY: Final = ("digest", *_OF_GROUP)
_CLAIM: Final = ("run", "store", "durable", "direction", "answer", "operation", "digest", "table", "cell")
_OF_CLAIM: Final = itemgetter(*(_TALLY.index(name) for name in _CLAIM if name != "run"))
_STORE, _DIRECTION, _ANSWER = (_TALLY.index(name) for name in ("store", "direction", "answer"))
_parts: Final = itemgetter(*_OF_GROUP)


class OutcomeSums:
    """Of the outcome records that were added."""

    def __init__(self) -> None:
        self._runs = Numbered()
        self._tallies: dict[Key, _Tally] = {}
        self._claims = Totals({
            "xor": "xor", "offset_first": "least", "offset_last": "most", "seq_first": "least", "seq_last": "most",
            "places": "sum", "squares": "sum", "lowest": "least", "highest": "most",
        })  # fmt: skip
        self._published = Totals({
            "xor": "xor", "offset_first": "least", "offset_last": "most", "lowest": "least", "highest": "most",
            "n_distinct": "places",
        })  # fmt: skip
        self._edges = Edges()

    def add(self, offsets: Sequence[int], values: Sequence[bytes | None]) -> None:
        """Raises NotPlainError; what was added until then is of no use any more."""
        batch = _Batch()
        for offset, value in zip(offsets, values, strict=True):
            record = shapes.record_of(value)
            run, at, digest = self._runs.add_outcomes(offset, record)
            if not BEGINNING <= at < END:
                raise NotPlainError
            for group in shapes.rows_of(record.get("groups")):
                self._group(batch, offset, run, at, digest, group)
        batch.sum_into(self._claims, self._published, self._edges)

    def _group(self, batch: _Batch, offset: int, run: str, at: int, digest: str, group: Any) -> None:
        shapes.check_there(group, OUTCOME_PARTS)
        seqs, eids = shapes.rows_of(group.get("seq")), shapes.rows_of(group.get("eid"))
        if len(seqs) != len(eids):
            raise NotPlainError
        shapes.numbers_or_none([group.get("store"), group.get("link")], BIGINT)
        shapes.numbers_or_none([group.get("cell"), group.get("answer_cell"), group.get("presettled")])
        key = digest, *_key(group)
        tally = self._tallies.get(key)
        if tally is None:
            tally = self._tallies[key] = _Tally()
        if seqs:
            is_stored = key[_DIRECTION] == "publish" and key[_ANSWER] == "stored"
            sender = (run, group.get("link"), key[_STORE]) if is_stored else None
            batch.add(offset, (run, *_OF_CLAIM(key)), sender, seqs, eids)
        tally.add(at, run, seqs, eids, group)

    def merge(self, others: OutcomeSums) -> None:
        self._runs.merge(others._runs)
        for key, tally in others._tallies.items():
            there = self._tallies.setdefault(key, tally)
            if there is not tally:
                there.merge(tally)
        self._claims.merge(others._claims)
        self._published.merge(others._published)
        self._edges.merge(others._edges)

    def rows(self) -> Iterator[tuple[str, Iterator[Row]]]:
        """By the name of the sum."""
        yield "runs", self._runs.rows("outcomes")
        yield "tallies", map(_row, self._tallies, self._tallies.values())
        yield "claims", self._claims.rows(*_CLAIM, "block")
        yield "published", self._published.rows("run", "store", "block")
        yield "edges", self._edges.rows()


def _key(group: Row) -> Key:
    """All but the digest that deliveries of a combination have in common, checked."""
    key: Key
    try:
        key = _parts(group)
    except KeyError:
        key = tuple([group.get(name) for name in _OF_GROUP])
    for text in _texts(key):
        if text is not None and type(text) is not str:
            raise NotPlainError
    return key


def _row(key: Key, tally: _Tally) -> Row:
    shapes.texts_or_none(_texts(key[1:]))
    return {**dict(zip(_TALLY, key, strict=True)), "inside": True, **tally.row()}


class _Tally:
    """Of deliveries that have all of its key in common."""

    __slots__ = ("at_first", "at_last", "count", "example")

    def __init__(self) -> None:
        self.count, self.at_first, self.at_last = 0, 1 << 63, -(1 << 63)
        self.example: Key = ()

    def add(self, at: int, run: str, seqs: Sequence[int], eids: Sequence[int], group: Row) -> None:
        self.count += len(seqs)
        self.at_last = max(self.at_last, at)
        if at <= self.at_first:
            shapes.texts_or_none([group.get("name"), group.get("container")])
            first = seqs[0] if seqs else None, eids[0] if eids else None
            self._exemplify(at, (at, run, *first, group.get("name"), group.get("container")))

    def _exemplify(self, at: int, example: Key) -> None:
        if at < self.at_first or _nulls_first(example) < _nulls_first(self.example):
            self.at_first, self.example = at, example

    def merge(self, others: _Tally) -> None:
        self.count += others.count
        self.at_last = max(self.at_last, others.at_last)
        if others.at_first <= self.at_first:
            self._exemplify(others.at_first, others.example)

    def row(self) -> Row:
        names = "at", "run", "seq", "eid", "link", "container"
        example = dict(zip(names, self.example, strict=True))
        return {"count": self.count, "at_first": self.at_first, "at_last": self.at_last, "example": example}


def _nulls_first(key: Key) -> list[tuple[bool, Any]]:
    return [(part is not None, part) for part in key]


class _Batch:
    """The deliveries of some records, by columns, and by groups what they have in common."""

    def __init__(self) -> None:
        self._seqs, self._eids = array("q"), array("q")
        self._counts, self._offsets, self._labels = array("q"), array("q"), array("q")
        self._label_of: dict[Key, int] = {}
        self._senders: list[Key | None] = []

    def add(self, offset: int, claim: Key, sender: Key | None, seqs: Sequence[int], eids: Sequence[int]) -> None:
        shapes.extend(self._seqs, seqs)
        shapes.extend(self._eids, eids)
        self._counts.append(len(seqs))
        self._offsets.append(offset)
        self._labels.append(self._label_of.setdefault(claim, len(self._label_of)))
        self._senders.append(sender)

    def sum_into(self, claims: Totals, published: Totals, edges: Edges) -> None:
        if not self._counts:
            return
        seqs, eids, counts, offsets, labels = (
            np.frombuffer(column, np.int64)
            for column in (self._seqs, self._eids, self._counts, self._offsets, self._labels)
        )
        edges.add(self._senders, offsets, seqs, eids, counts)
        places, of_each = seqs & (SEQ_SIZE - 1), np.repeat(offsets, counts)
        values: dict[str, Column] = {
            "xor": hashed(seqs, eids, eids >= 0), "offset_first": of_each, "offset_last": of_each,
            "seq_first": seqs, "seq_last": seqs, "places": places, "squares": places * places,
            "lowest": np.maximum(eids, -1), "highest": np.maximum(eids, -1),
        }  # fmt: skip
        claims.add([*self._label_of], np.repeat(labels, counts), [seqs >> SEQ_BITS], values)
        self._sum_published(published, eids, of_each, counts)

    def _sum_published(self, published: Totals, eids: Column, offsets: Column, counts: Column) -> None:
        stores: dict[Key, int] = {}
        senders = [
            -1 if sender is None else stores.setdefault((sender[0], sender[2]), len(stores)) for sender in self._senders
        ]
        store_of = np.repeat(np.array(senders, np.int64), counts)
        chosen = (store_of >= 0) & (eids >= 0)
        there, from_offsets = eids[chosen], offsets[chosen]
        published.add([*stores], store_of[chosen], [there >> EID_BITS], {
            "xor": hashed(there), "offset_first": from_offsets, "offset_last": from_offsets, "lowest": there,
            "highest": there, "n_distinct": there & (EID_SIZE - 1),
        })  # fmt: skip
