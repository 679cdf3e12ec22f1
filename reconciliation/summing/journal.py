"""Sums of the journal: `runs`, `notes`, `acts`, `mentions`, `ends`, `end_blocks`, `copied` (`transforms.sums` says what
each is)."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from reconciliation.model.acts import ACTS, ASKED, DEAD_LETTER, ENDS, PLACED, STRETCH, WAYS
from reconciliation.model.ranges import EID_BITS, SEQ_BITS
from reconciliation.model.runs import RECORDED
from reconciliation.model.schemas import JOURNAL_PARTS
from reconciliation.summing import shapes
from reconciliation.summing.hashing import Column, hashed
from reconciliation.summing.numbered import Numbered
from reconciliation.summing.shapes import BIGINT, NotPlainError
from reconciliation.summing.totals import Key, Row, Totals, most

EIDS_MAX: Final = 2_000_000
"""So many ends are unfolded at a time; more of one range are not."""
_HIGHEST: Final = 1 << 61
"""Above it Spark's sums of two of them do not fit: no gateway writes one."""
_END: Final = ("run", "store", "durable", "operation", "failed")
_ACT: Final = ("store", "durable", "operation", "cause", "offset", "first", "last")


class JournalSums:
    """Of the journal's records that were added."""

    def __init__(self) -> None:
        self._runs = Numbered()
        self._notes: list[Row] = []
        self._acts: dict[Key, Row] = {}
        self._mentions: dict[Key, Row] = {}
        offsets = {"offset_first": "least", "offset_last": "most"}
        self._ends = Totals({"xor": "xor", **offsets})
        counts = dict.fromkeys((*WAYS.values(), "kept_nowhere"), "sum")
        self._end_blocks = Totals({"xor": "xor", **offsets, "eid_last": "most", "cover": "least", **counts})
        self._copied = Totals({"xor": "xor"})

    def add(self, offsets: Sequence[int], values: Sequence[bytes | None]) -> None:
        """Raises NotPlainError; what was added until then is of no use any more."""
        batch = _Batch()
        for offset, value in zip(offsets, values, strict=True):
            if value is None:
                continue  # a mark is no record
            record = shapes.record_of(value)
            run, at = self._runs.add(offset, record)
            noted: list[int] = []
            for entry in shapes.rows_of(record.get("entries")):
                shapes.check_there(entry, JOURNAL_PARTS)
                ranges = _ranges(entry)
                if entry.get("operation") == RECORDED:
                    noted += [last for _, last, *_ in ranges]
                else:
                    self._mention(offset, at, entry)
                self._entry(batch, offset, run, at, entry, ranges)
                if batch.eids > EIDS_MAX:
                    batch.sum_into(self._ends, self._end_blocks, self._copied)
                    batch = _Batch()
            if noted:
                self._notes.append({"run": run, "offset": offset, "at": at, "recorded": max(noted)})
        batch.sum_into(self._ends, self._end_blocks, self._copied)

    def _entry(
        self, batch: _Batch, offset: int, run: str, at: int, entry: Row, ranges: list[tuple[int, int, int, int]]
    ) -> None:
        operation = entry.get("operation")
        is_end = operation == "return" or operation in ENDS
        for first, last, first_seq, cover in ranges:
            of_none = operation in ASKED and first_seq < 1
            if operation in ACTS or of_none:
                self._act(offset, run, at, entry, first, last, of_none=of_none)
            if is_end:
                batch.add(offset, run, entry, first, last, first_seq, first if operation == "return" else cover)

    def _act(self, offset: int, run: str, at: int, entry: Row, first: int, last: int, *, of_none: bool) -> None:
        operation = entry["operation"]
        where: Key = (None, None, None)
        if operation in PLACED:
            where = offset, first, last
        elif of_none:
            where = None, first - first % STRETCH, None
        key = entry.get("store"), entry.get("durable"), operation, entry.get("cause"), *where
        row = {"node": entry.get("node"), "lowest": first, "highest": last, "count": last - first + 1, "at": at,
               "run": run}  # fmt: skip
        _put(self._acts, key, row, _act_added)

    def _mention(self, offset: int, at: int, entry: Row) -> None:
        operation = entry.get("operation")
        if operation is None:
            return
        is_end = operation == "delete"
        times = {"last": None if is_end else at, "ended": at if is_end else None}
        places = {"offset_first": offset, "offset_last": offset}
        key = entry.get("store"), entry.get("durable")
        _put(self._mentions, key, {"node": entry.get("node"), **times, **places}, _mention_added)
        if entry.get("to") is not None:
            _put(self._mentions, (entry["to"], ""), {"node": None, **times, **places}, _mention_added)

    def merge(self, others: JournalSums) -> None:
        self._runs.merge(others._runs)
        self._notes += others._notes
        for key, row in others._acts.items():
            _put(self._acts, key, row, _act_added)
        for key, row in others._mentions.items():
            _put(self._mentions, key, row, _mention_added)
        self._ends.merge(others._ends)
        self._end_blocks.merge(others._end_blocks)
        self._copied.merge(others._copied)

    def rows(self) -> Iterator[tuple[str, Iterator[Row]]]:
        """By the name of the sum."""
        yield "runs", self._runs.rows("journal")
        yield "notes", iter(self._notes)
        yield "acts", ({**dict(zip(_ACT, key, strict=True)), **row} for key, row in self._acts.items())
        yield "mentions", ({"store": key[0], "durable": key[1], **row} for key, row in self._mentions.items())
        yield "ends", self._ends.rows(*_END, "block")
        yield "end_blocks", self._end_blocks.rows("run", "store", "durable", "returned", "block")
        yield "copied", self._copied.rows("store")


def _ranges(entry: Any) -> list[tuple[int, int, int, int]]:
    """[FIRST, LAST, FIRST_SEQ, COVER] of a checked entry; COVER is FIRST where there is none."""
    if type(entry) is not dict:
        raise NotPlainError
    shapes.texts_or_none([entry.get(name) for name in ("node", "durable", "operation", "cause")])
    shapes.numbers_or_none([entry.get("store"), entry.get("to")], BIGINT)
    shapes.numbers_or_none([entry.get("failed")])
    ranges = []
    for numbers in shapes.rows_of(entry.get("runs")):
        if len(shapes.rows_of(numbers)) < 3:
            raise NotPlainError
        shapes.numbers_or_none(numbers, BIGINT)
        first, last, first_seq = map(shapes.number, numbers[:3])
        if not 0 <= first <= last < _HIGHEST or not 0 <= first_seq < _HIGHEST:
            raise NotPlainError
        cover = numbers[3] if len(numbers) > 3 and numbers[3] is not None else first
        ranges.append((first, last, first_seq, min(first, cover)))
    return ranges


def _put(rows: dict[Key, Row], key: Key, row: Row, added: Any) -> None:
    there = rows.get(key)
    rows[key] = row if there is None else added(there, row)


def _act_added(left: Row, right: Row) -> Row:
    first = min(left, right, key=lambda row: (row["at"], row["run"]))
    return {
        "node": most(left["node"], right["node"]),
        "lowest": min(left["lowest"], right["lowest"]),
        "highest": max(left["highest"], right["highest"]),
        "count": left["count"] + right["count"],
        "at": first["at"],
        "run": first["run"],
    }


def _mention_added(left: Row, right: Row) -> Row:
    return {
        **{name: most(left[name], right[name]) for name in ("node", "last", "ended")},
        "offset_first": min(left["offset_first"], right["offset_first"]),
        "offset_last": max(left["offset_last"], right["offset_last"]),
    }


class _Batch:
    """The ends and returns of some records, by columns."""

    def __init__(self) -> None:
        self._columns: Mapping[str, array[int]] = {
            name: array("q") for name in ("offset", "first", "last", "first_seq", "cover", "label")
        }
        self._label_of: dict[Key, int] = {}
        self.eids = 0

    def add(self, offset: int, run: str, entry: Row, first: int, last: int, first_seq: int, cover: int) -> None:
        if last - first >= EIDS_MAX:
            raise NotPlainError
        self.eids += last - first + 1
        label = (run, *(entry.get(name) for name in ("store", "durable", "operation", "failed", "to")))
        row = offset, first, last, first_seq, cover, self._label_of.setdefault(label, len(self._label_of))
        for column, number in zip(self._columns.values(), row, strict=True):
            column.append(number)

    def sum_into(self, ends: Totals, end_blocks: Totals, copied: Totals) -> None:
        if not self.eids:
            return
        columns = {name: np.frombuffer(column, np.int64) for name, column in self._columns.items()}
        counts = columns["last"] - columns["first"] + 1
        of_each = {name: np.repeat(column, counts) for name, column in columns.items()}
        within = np.arange(len(of_each["first"]), dtype=np.int64) - np.repeat(np.cumsum(counts) - counts, counts)
        eids, labels, offsets = of_each["first"] + within, of_each["label"], of_each["offset"]
        keys = [*self._label_of]
        spans = {"offset_first": offsets, "offset_last": offsets}
        settled = of_each["first_seq"] > 0
        seqs = (of_each["first_seq"] + within)[settled]
        values = {"xor": hashed(seqs, eids[settled])} | {name: column[settled] for name, column in spans.items()}
        ends.add([key[:-1] for key in keys], labels[settled], [seqs >> SEQ_BITS], values)
        ways = {
            name: np.array([key[3] == operation for key in keys], np.int64)[labels] for operation, name in WAYS.items()
        }
        kept_nowhere = np.array([key[3] == DEAD_LETTER and key[-1] is None for key in keys], np.int64)[labels]
        places = [(*key[:3], key[3] == "return") for key in keys]
        of_block = {"xor": hashed(eids), **spans, "eid_last": eids, **ways, "kept_nowhere": kept_nowhere}
        of_block["cover"] = np.where(within == 0, of_each["cover"], eids)
        end_blocks.add(places, labels, [eids >> EID_BITS], of_block)
        _add_copies(copied, keys, labels, eids)


def _add_copies(copied: Totals, keys: Sequence[Key], labels: Column, eids: Column) -> None:
    """`keys` end with the store that a copy was kept in, or None. Where the first store is unknown, its hash is the
    event's alone, which Spark makes."""
    is_copied = np.array([key[-1] is not None for key in keys], bool)[labels]
    if not is_copied.any():
        return
    if any(key[-1] is not None and key[1] is None for key in keys):
        raise NotPlainError
    from_stores = np.array([key[1] or 0 for key in keys], np.int64)[labels[is_copied]]
    values = {"xor": hashed(from_stores, eids[is_copied])}
    copied.add([(key[-1],) for key in keys], labels[is_copied], [], values)
