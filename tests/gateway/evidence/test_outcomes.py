"""Outcome records: every delivery once, `low` exact, groups by what was said, the last record marked."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.evidence.outcome_key import LinkIdentity, OutcomeKey
from gateway.evidence.outcomes import DUE_COUNT, DUE_US, MESSAGE_IDS_MAX, Outcomes
from mappings import load_tables

TABLES = load_tables()
ORIGIN = TABLES.origin
LISTED = {"rejected": "agreed", "released": "agreed"}
STORED = TABLES["published"].decide(answer="stored", sender_settle_mode="mixed", presettled="no", **LISTED)
PUBLISH = TABLES["publish"].decide(
    framing="whole", transformed="event", transactional="no", sender_settle_mode="mixed", presettled="no", **LISTED
)
LINK = LinkIdentity(3, "publish", "link", "container", "q", 17, user="alice")


def outcome_key(outcome: str = "accepted", **more: Any) -> OutcomeKey:
    words: dict[str, Any] = {
        "link": LINK,
        "rule": PUBLISH,
        "answer_rule": STORED,
        "operation": "publish",
        "cause": "transfer",
        "answer": "stored",
        "native": None,
        "outcome": outcome,
        "condition": None,
        "klass": None,
        "presettled": False,
    }
    return OutcomeKey(**words | more)


class Book:
    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = []
        self.now = 7
        self.turn_us = DUE_US
        self.outcomes = Outcomes("run", ORIGIN, self._append, self._epoch_us)

    def _epoch_us(self) -> int:
        self.now += self.turn_us
        return self.now

    def _append(self, key: bytes, value: bytes) -> None:
        assert key == b"run"
        self.records.append(json.loads(value))


@settings(max_examples=150, deadline=None)
@given(st.lists(st.integers(1, 20), min_size=1, max_size=8), st.randoms(use_true_random=False), st.integers(1, 9))
def test_low_is_the_lowest_seq_without_a_record(sizes: list[int], random: Any, turn: int) -> None:
    book = Book()
    seqs = [first + at for size in sizes for first in [book.outcomes.number(size)] for at in range(size)]
    assert seqs == list(range(1, len(seqs) + 1))
    random.shuffle(seqs)
    reported: set[int] = set()
    key = outcome_key()
    while seqs:
        some, seqs = seqs[:turn], seqs[turn:]
        if random.random() < 0.5:
            some.sort()
        book.outcomes.tell(key, some, [-1] * len(some))
        reported.update(some)
        book.outcomes.flush()
        record = book.records[-1]
        assert record["low"] == next(seq for seq in range(1, len(reported) + 2) if seq not in reported)
        assert record["groups"][0]["seq"] == some
        assert book.outcomes.open == sum(sizes) + 1 - record["low"]
    assert [record["n"] for record in book.records] == list(range(1, len(book.records) + 1))


def test_turns_that_follow_each_other_fast_share_a_record() -> None:
    book = Book()
    key = outcome_key()
    book.turn_us = DUE_US // 2
    for _ in range(6):
        seq = book.outcomes.number(1)
        book.outcomes.tell(key, [seq], [seq])
        book.outcomes.flush()
    book.outcomes.flush(closed=True)
    assert [group["seq"] for record in book.records for group in record["groups"]] == [[1, 2], [3, 4], [5, 6]]


def test_a_record_does_not_wait_to_grow_large() -> None:
    book = Book()
    book.turn_us = 0
    for _ in range(2):
        first = book.outcomes.number(DUE_COUNT)
        book.outcomes.tell(outcome_key(), range(first, first + DUE_COUNT), range(DUE_COUNT))
        book.outcomes.flush()
    assert len(book.records) == 2


def test_equal_outcomes_are_one_group() -> None:
    book = Book()
    first = book.outcomes.number(5)
    yes, no = outcome_key(), outcome_key("rejected", condition="amqp:internal-error", klass="fatal", native="CODE")
    book.outcomes.tell(yes, [first, first + 1], [10, 11])
    book.outcomes.tell(no, [first + 2], [-1])
    book.outcomes.tell(yes, [first + 3, first + 4], [13, 12])
    book.outcomes.flush()
    (record,) = book.records
    assert [(group["seq"], group["eid"]) for group in record["groups"]] == [
        ([1, 2, 4, 5], [10, 11, 13, 12]),
        ([3], [-1]),
    ]
    assert record["groups"][1] | {"seq": 0, "eid": 0} == {
        "direction": "publish",
        "link": 3,
        "name": "link",
        "container": "container",
        "user": "alice",
        "node": "q",
        "store": 17,
        "durable": None,
        "table": "publish",
        "cell": PUBLISH.cell,
        "rule": "publish-mixed",
        "answer_table": "published",
        "answer_cell": STORED.cell,
        "answer_rule": "stored-accepted",
        "operation": "publish",
        "cause": "transfer",
        "answer": "stored",
        "native": "CODE",
        "outcome": "rejected",
        "condition": "amqp:internal-error",
        "class": "fatal",
        "presettled": 0,
        "seq": 0,
        "eid": 0,
    }
    head = {key: value for key, value in record.items() if key != "groups"}
    assert head == {
        "v": 1, "run": "run", "n": 1, "at": book.now, "low": 6, "next": 6, "digest": ORIGIN.digest,
        "profile": "extended", "closed": 0,
    }  # fmt: skip


class Named:
    """Messages of which every second one has an id, and the second and fourth cannot be named."""

    def __init__(self) -> None:
        self.looked_at = 0

    def message_ids(self, seqs: Sequence[int], most: int) -> list[tuple[int, str | None]]:
        some = seqs[:most]
        self.looked_at += len(some)
        return [(seq, f"m-{seq}" if seq % 2 else None if seq < 5 else "") for seq in some]


def test_what_was_not_stored_is_named_and_a_flood_is_counted() -> None:
    book, messages = Book(), Named()
    key = outcome_key("released", answer="capacity-reached")
    first = book.outcomes.number(200)
    book.outcomes.tell_published(key, range(first, first + 3), [-1] * 3, messages)
    book.outcomes.tell_published(outcome_key(), [first + 3], [17], messages)
    book.outcomes.tell_published(key, range(first + 4, first + 100), [-1] * 96, messages)
    assert messages.looked_at == MESSAGE_IDS_MAX, "what is stored is not looked at"
    book.outcomes.flush()
    refused, stored = book.records[0]["groups"]
    odd = [seq for seq in refused["seq"][:MESSAGE_IDS_MAX] if seq % 2]
    assert refused["message_ids"] == [[seq, f"m-{seq}"] for seq in odd]
    assert refused["message_ids_left_out"] == 99 - MESSAGE_IDS_MAX + 1, "and the second one"
    assert "message_ids" not in stored and "message_ids_left_out" not in stored
    book.outcomes.tell_published(key, [first + 100], [-1], messages)
    book.outcomes.tell_published(key, range(first + 101, first + 200), [-1] * 99, None)
    book.outcomes.flush()
    assert book.records[1]["groups"][0]["message_ids"] == [[101, "m-101"]], "the next record has room again"
    assert book.records[1]["groups"][0]["message_ids_left_out"] == 99, "octets that are not kept have no ids"


def test_a_turn_without_outcomes_leaves_no_record_and_the_last_one_is_marked() -> None:
    book = Book()
    book.outcomes.flush()
    assert book.records == []
    book.outcomes.tell(outcome_key(), [book.outcomes.number(1)], [5])
    book.outcomes.flush()
    book.outcomes.flush(closed=True)
    assert [(record["closed"], len(record["groups"])) for record in book.records] == [(0, 1), (1, 0)]
