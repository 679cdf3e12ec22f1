"""Message-id and body of stored messages, in each encoding that AMQP has for them."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from proton import Message, ulong
from pyspark.sql import SparkSession

from reconciliation.ledgers.parsing import parsed
from reconciliation.model.schemas import MESSAGE, MESSAGE_DDL
from tests.kit.wire.client_ledger import body_of

NAME = uuid.UUID("00112233-4455-6677-8899-aabbccddeeff")
LONG = "x" * 300
OURS = b"1;basic;18a-0001;7;1;4;;0;;0"
Wanted = tuple[str | None, str | None, bool]
"""Message-id, body, and whether the sections could be walked."""


def message(body: Any = "text", **fields: Any) -> bytes:
    encoded: bytes = Message(body=body, **fields).encode()
    return encoded


TEXT = body_of(b"text")
HEADER, ANNOTATIONS = b"\x00\x53\x70\xc0\x02\x01\x41", b"\x00\x53\x72\xd1\0\0\0\x04\0\0\0\0"
FOOTER = b"\x00\x53\x78\xc1\x01\x00"
DATA = b"\x00\x53\x75\xa0\x04text"
ENCODINGS: dict[str, tuple[bytes, Wanted]] = {
    "string": (message(id="m-1"), ("m-1", TEXT, True)),
    "long string": (message(id=LONG), (LONG, TEXT, True)),
    "beyond ASCII": (message("\u00fcber", id="\u00fc"), ("\u00fc", body_of("\u00fcber".encode()), True)),
    "small number": (message(id=ulong(7)), ("7", TEXT, True)),
    "number 0": (message(id=ulong(0)), ("0", TEXT, True)),
    "large number": (message(id=ulong(2**64 - 1)), (str(2**64 - 1), TEXT, True)),
    "UUID": (message(id=NAME), (str(NAME), TEXT, True)),
    "octets": (message(id=b"\x00\xff"), ("00ff", TEXT, True)),
    "long octets": (message(id=b"\xab" * 300), ("ab" * 300, TEXT, True)),
    "none": (message(), (None, TEXT, True)),
    "other properties": (message(address="orders", subject="s"), (None, TEXT, True)),
    "all sections": (
        message(id="m-2", durable=True, annotations={"x-opt-a": 1}, properties={"a": LONG}, ttl=7),
        ("m-2", TEXT, True),
    ),
    "many properties": (message(id="m-3", properties={f"p{n}": n for n in range(99)}), ("m-3", TEXT, True)),
    "octets as body": (message(b"text", id="m-4"), ("m-4", TEXT, True)),
    "long body": (message(b"\x00" * 70_000, id="m-5"), ("m-5", body_of(b"\x00" * 70_000), True)),
    "no octets as body": (message(b"", id="m-6"), ("m-6", "00000000", True)),
    "list as body": (message([1, 2], id="m-7"), ("m-7", None, True)),
    "number as body": (message(17, id="m-8"), ("m-8", None, True)),
    "data behind a footer": (HEADER + ANNOTATIONS + DATA + FOOTER, (None, TEXT, True)),
    "two of data": (DATA + DATA, (None, None, True)),
    "a sequence": (b"\x00\x53\x76\x45", (None, None, True)),
    "an empty list of properties": (b"\x00\x53\x73\x45" + DATA, (None, TEXT, True)),
    "a wide descriptor": (b"\x00\x80\0\0\0\0\0\0\0\x73\xc0\x04\x01\xa1\x01a" + DATA, (None, None, False)),
    "no body": (HEADER + b"\x00\x53\x73\xc0\x06\x01\xa1\x03m-9", ("m-9", None, True)),
    "no body and a footer": (HEADER + FOOTER, (None, None, True)),
    "a size beyond all": (b"\x00\x53\x70\xd0\xff\xff\xff\xff" + DATA, (None, None, False)),
    "a size that would overflow": (b"\x00\x53\x70\xd0\x7f\xff\xff\xff" + DATA, (None, None, False)),
    "a body beyond all": (b"\x00\x53\x75\xb0\xff\xff\xff\xfftext", (None, TEXT, True)),
    "no message": (b"body", (None, None, False)),
    "nothing": (b"", (None, None, False)),
}


def headed(identity: str, *headers: tuple[str, bytes | None]) -> list[tuple[str, bytes | None]]:
    return [("um-event", identity.encode()), *headers]


HEADED: dict[str, tuple[bytes | None, bytes, list[tuple[str, bytes | None]], Wanted]] = {
    "string": (
        b"key", b"text",
        headed("3;complete;18a-0001;7;1;4;", ("um-body", b"data"), ("um-types", b"ubyte,string"),
               ("nHeader.Priority", b"4"), ("nHeader.MessageId", b"m-1")),
        ("m-1", TEXT, True),
    ),
    "octets that are text": (
        None, b"text",
        headed("3;complete;18a-0001;7;1;4;", ("um-body", b"string"), ("um-sections", b"x"), ("um-types", b"binary"),
               ("nHeader.MessageId", b"m-1")),
        ("6d2d31", TEXT, True),
    ),
    "a copy": (
        None, b"text",
        headed("2;7;41;rejected;3;complete;18a-0001;7;1;4;", ("um-body", b"binary"), ("um-types", b"ulong"),
               ("nHeader.MessageId", b"17")),
        ("17", TEXT, True),
    ),
    "of a user's transformer": (
        None, b"text",
        headed("3;orders;18a-0001;7;1;4;", ("um-body", b"data"), ("um-types", b"string"),
               ("nHeader.MessageId", b"m-1")),
        (None, None, False),
    ),
    "sections": (
        None, b"\x00\x53\x76\x45",
        headed("3;complete;18a-0001;7;1;4;", ("um-body", b"sections"), ("um-types", b"")),
        (None, None, True),
    ),
}  # fmt: skip


@pytest.fixture
def read(session: SparkSession, tmp_path: Path) -> Callable[[list[tuple[Any, ...]]], list[Any]]:
    def read(rows: list[tuple[Any, ...]]) -> list[Any]:
        """`rows`: key, value, headers."""
        whole = [("t", 0, at, 0, *row) for at, row in enumerate(rows)]
        columns = [
            pa.array(column, field.type) for column, field in zip(zip(*whole, strict=True), MESSAGE, strict=True)
        ]
        pq.write_table(pa.table(columns, schema=MESSAGE), tmp_path / "messages.parquet")
        results = parsed(session.read.schema(MESSAGE_DDL).parquet(str(tmp_path))).orderBy("offset").collect()
        assert len(results) == len(rows)
        return results

    return read


def test_each_encoding_is_read(read: Callable[[list[tuple[Any, ...]]], list[Any]]) -> None:
    plain: list[tuple[Any, ...]] = [
        (key, value, []) for value, _ in ENCODINGS.values() for key in (OURS, b"2;3;4;rejected;" + OURS, b"theirs")
    ]
    results = read(plain + [(key, value, headers) for key, value, headers, _ in HEADED.values()])
    rows = [(row["id"], row["body"], row["is_read"]) for row in results]
    for at, (name, (_, wanted)) in enumerate(ENCODINGS.items()):
        assert rows[3 * at : 3 * at + 3] == [wanted, wanted, (None, None, True)], name
    assert rows[3 * len(ENCODINGS) :] == [wanted for *_, wanted in HEADED.values()]
    named = [(row["run"], row["seq"]) for row in results]
    assert named[:3] == [("18a-0001", 7), (None, None), (None, None)], "a copy was not published"
    assert named[-5:] == [("18a-0001", 7), ("18a-0001", 7), (None, None), ("18a-0001", 7), ("18a-0001", 7)]
