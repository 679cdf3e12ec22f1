"""Records of the history: they add up to the counters, one waits at most, and none is larger than it may be."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.evidence.history import FAMILIES, RECORD_BYTES, History, Reading
from native_backend.nodes.answers import HistoryStored

MINUTE_US = 60_000_000
BEGAN_US = 1_700_000_000_000_000


class Book:
    """A history whose counters, clock and log are the test's."""

    def __init__(self) -> None:
        self.counts: dict[str, Counter[tuple[str, ...]]] = {name: Counter() for name in FAMILIES}
        self.classes, self.total_us, self.connections = [0] * 14, 0, 0
        self.now_us = BEGAN_US
        self.sent: list[tuple[dict[str, Any], Any]] = []
        self.sizes: list[int] = []
        self.history = History("run", self._read, self._append, lambda: self.now_us, 60)

    def _read(self) -> Reading:
        counts = {name: dict(counter) for name, counter in self.counts.items()}
        return Reading(
            counts,
            {"accept": ([*self.classes], self.total_us)},
            {"new_links": self.counts["faults"].total()},
            {"connections": self.connections, "links": 0},
        )

    def _append(self, key: bytes, value: bytes, owner: object) -> None:
        assert key == b"run"
        self.sizes.append(len(value))
        self.sent.append((json.loads(value), owner))

    def count(self, family: str, *key: str, count: int = 1) -> None:
        self.counts[family][key] += count

    def minute(self) -> dict[str, Any] | None:
        """The record that it writes when a minute is over."""
        before = len(self.sent)
        self.now_us += MINUTE_US
        self.history.advance()
        assert len(self.sent) <= before + 1
        return self.sent[-1][0] if len(self.sent) > before else None

    def answer(self, stored: bool, at: int = -1) -> None:
        owner = self.sent[at][1]
        owner.answered(HistoryStored(owner, stored, "" if stored else "_TIMED_OUT"))


def test_a_record_has_what_was_counted_since_the_one_before() -> None:
    book = Book()
    book.count("deliveries", "in", "orders", "accepted", count=3)
    book.classes[2], book.total_us, book.connections = 3, 9_000, 2
    first = book.minute()
    assert first == {
        "v": 1,
        "run": "run",
        "n": 1,
        "begin": BEGAN_US,
        "end": BEGAN_US + MINUTE_US,
        "connections": 2,
        "links": 0,
        "deliveries": [["in", "orders", "accepted", 3]],
        "seconds": {"accept": {"counts": [0, 0, 3, *[0] * 11], "total_us": 9_000}},
    }
    book.answer(True)
    book.count("deliveries", "in", "orders", "accepted")
    book.count("errors", "amqp:not-found", "", "fatal", "attach.refuse", "")
    second = book.minute()
    assert second is not None
    assert (second["n"], second["begin"]) == (2, BEGAN_US + MINUTE_US)
    assert second["deliveries"] == [["in", "orders", "accepted", 1]]
    assert second["errors"] == [["amqp:not-found", "", "fatal", "attach.refuse", "", 1]]
    assert "seconds" not in second


def test_a_minute_without_a_change_is_a_tiny_record() -> None:
    book = Book()
    record = book.minute()
    assert record is not None and not record.keys() & FAMILIES.keys()
    assert book.sizes[-1] < 200
    book.history.advance()
    assert len(book.sent) == 1, "one a minute"


def test_what_was_not_stored_is_in_the_next_record_which_replaces_it() -> None:
    book = Book()
    book.count("faults", "framing")
    book.minute()
    book.answer(False)
    book.count("faults", "framing")
    again = book.minute()
    assert again is not None
    assert (again["n"], again["begin"], again["missed"], again["faults"]) == (1, BEGAN_US, 1, [["framing", 2]])
    assert again["new_links"] == 2
    book.answer(True)
    following = book.minute()
    assert following is not None
    assert (following["n"], "missed" in following, "faults" in following) == (2, False, False)


def test_one_record_waits_at_most() -> None:
    book = Book()
    book.minute()
    for _ in range(10):
        book.count("alarms", "evidence not stored")
        assert book.minute() is None, "the log has not answered"
    book.answer(True)
    late = book.minute()
    assert late is not None
    assert (late["n"], late["begin"], late["alarms"]) == (2, BEGAN_US + MINUTE_US, [["evidence not stored", 10]])


def test_the_last_record_replaces_one_that_still_waits() -> None:
    book = Book()
    book.count("rules", "publish", "store")
    book.minute()
    book.count("rules", "publish", "store")
    book.history.close()
    last = book.sent[-1][0]
    assert (last["n"], last["begin"], last["closed"], last["rules"]) == (1, BEGAN_US, 1, [["publish", "store", 2]])
    book.answer(False, 0)  # nothing hears of the replaced one any more
    assert len(book.sent) == 2


def test_a_clock_that_is_set_back_gives_no_time_below_nothing() -> None:
    book = Book()
    book.minute()
    book.answer(True)
    book.now_us -= 10 * MINUTE_US
    book.history.advance()
    record = book.sent[-1][0]
    assert record["begin"] == record["end"] == BEGAN_US - 9 * MINUTE_US


@pytest.mark.parametrize("length", [5, 1_000])
def test_no_record_is_larger_than_it_may_be(length: int) -> None:
    book = Book()
    for name, family in FAMILIES.items():
        for number in range(1_500):
            bounded = {"direction": "in", "outcome": "modified", "class": "transient", "cause": "attempts"}
            key = [bounded.get(field, f"{field}{number}" + "ü" * length) for field in family.fields]
            book.count(name, *key, count=number + 1)
    record = book.minute()
    assert record is not None
    assert book.sizes[-1] <= RECORD_BYTES
    for name in FAMILIES:
        assert sum(row[-1] for row in record[name]) == 1_500 * 1_501 // 2, name
    assert ["in", "other", "modified"] in [row[:-1] for row in record["deliveries"]]
    assert ["other", "other", "transient", "other", "other"] in [row[:-1] for row in record["errors"]]
    if length == 5:
        assert record["deliveries"][0] == ["in", "node1499" + "ü" * 5, "modified", 1_500], "the largest ones are named"


KEYS = st.sampled_from([("in", "a", "accepted"), ("in", "b", "rejected"), ("out", "a", "accepted")])


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.lists(KEYS, max_size=4), st.sampled_from(["stored", "refused", "lost", "late"]))))
def test_records_add_up_to_the_counters(minutes: list[tuple[list[tuple[str, str, str]], str]]) -> None:
    """`lost`: of unknown result, and stored all the same. Of each number the last record that is stored counts."""
    book = Book()
    kept: dict[int, dict[str, Any]] = {}
    for keys, fate in minutes:
        for key in keys:
            book.count("deliveries", *key)
        book.minute()
        if fate != "late" and book.history.is_waiting:
            if fate in ("stored", "lost"):
                record = book.sent[-1][0]
                kept[record["n"]] = record
            book.answer(fate == "stored")
    book.history.close()
    kept[book.sent[-1][0]["n"]] = book.sent[-1][0]
    total: Counter[tuple[str, ...]] = Counter()
    for record in kept.values():
        for *key, count in record.get("deliveries", []):
            total[tuple(key)] += count
    assert total == book.counts["deliveries"]
    assert sorted(kept) == [*range(1, len(kept) + 1)]
