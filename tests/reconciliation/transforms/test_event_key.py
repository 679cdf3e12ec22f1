"""The auditor reads event keys by patterns of its own; they say of every key what the realm says of it."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from native_backend.log import event_key
from reconciliation.transforms import decode

RUN = "6743a1f0-0c2e"
RECORDS = "topic string, partition int, offset bigint, timestamp bigint, key binary"
NODES = "topic string, partition int, store bigint, node string, standing string, adopted_at bigint"


LINE_ENDS = ("\n", "\r", "\u0085", "\u2028", "\u2029")
"""What a regular expression of Java may take for the end of a text."""


def published() -> list[bytes]:
    keys = []
    for name in ("none", "basic", "complete", "of-a-user"):
        for headed in (False, True):
            begin = event_key.prefix(name, RUN, headed=headed)
            keys += [begin + rest for rest in (b"7", b"7;0;4;;", b"8;1;9;T500", b"9;1;4;;D1700000000000;G1f")]
            keys.append(keys[-1] + event_key.origin_mark(0xABC))
    return keys


def foreign() -> list[bytes]:
    begin = event_key.prefix("basic", RUN, headed=False)
    return [b"", b"orders", b"1;2;3", b"2;x;4;dead;", begin, begin + b"seven", b"9" + begin[1:] + b"7", b"\xff\xfe",
            *(begin + f"7{end}".encode() for end in LINE_ENDS)]  # fmt: skip


def test_the_auditor_and_the_realm_read_a_key_alike(session: SparkSession) -> None:
    keys = published() + foreign()
    keys += [event_key.copy_of(71, 12, cause, key) for cause in ("dead-letter", "moved") for key in keys]
    rows: list[tuple[Any, ...]] = [("t", 0, at, 0, key) for at, key in enumerate(keys)]
    records = session.createDataFrame(rows, RECORDS)
    nodes = session.createDataFrame([("t", 0, 71, "orders", "read", None)], NODES)
    events = {row["eid"]: row for row in decode.events(records, nodes).collect()}
    assert len(events) == len(keys)
    for at, key in enumerate(keys):
        seen, is_copy = events[at], event_key.copied_from(key) is not None
        assert seen["copy"] == is_copy, key
        origin = None if is_copy else event_key.published_as(key)
        assert (None if seen["run"] is None else (seen["run"], seen["seq"])) == origin, key
