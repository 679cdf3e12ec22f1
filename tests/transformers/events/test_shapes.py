"""Keys of a column without an object a message are the keys that each message has by itself."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from native_backend.log.octets import Octets
from tests.transformers.messages import Built, messages
from transformers import TRANSFORMERS, transformer
from transformers.codec import Described, Symbol, UByte, UInt, ULong, encode
from transformers.events.basic import Basic
from transformers.events.none import Opaque

PREFIX = b"1;basic;19aa5b3c1f0-9c2e;"
HEADERS = [b"", encode(Described(0x70, [True, UByte(7), UInt(60000)])), encode(Described(0x70, [False, "high"]))]
ANNOTATIONS = [
    b"",
    encode(Described(0x71, {Symbol("x-opt-a"): 1})),
    encode(Described(0x72, {Symbol("x-opt-b"): 1})),
    encode(Described(0x72, {Symbol("x-opt-delivery-delay"): ULong(250)})),
    encode(Described(0x72, {Symbol("no-annotation"): 1})),
]
PROPERTIES = [
    b"",
    *(
        encode(Described(0x73, fields))
        for fields in (["id"], ["id"] + [None] * 9 + ["group"], ["i" * 100], ["i" * 600])
    ),
]
APPLICATION = [b"", encode(Described(0x74, {"k": "v"})), encode(Described(0x74, {f"k{i}": "v" * 9 for i in range(40)}))]
BODIES = [encode(Described(code, body)) for code, body in ((0x75, b"x" * 20), (0x75, b"y" * 20), (0x75, b"x" * 900))]
BODIES += [encode(Described(0x77, "text")), encode(Described(0x76, [1])), b"", BODIES[0] * 2, BODIES[0][:-1], b"\0"]
FOOTERS = [b"", encode(Described(0x78, {Symbol("x-opt-h"): b"h"}))]
USUAL = [b"".join(parts) for parts in product(HEADERS, ANNOTATIONS, PROPERTIES, APPLICATION, BODIES, FOOTERS)]


def held(name: str, column: list[bytes], first_seq: int) -> None:
    made = transformer(name)
    assert isinstance(made, Basic | Opaque)
    keys, values = made.transform_columns(column, PREFIX, first_seq)
    column_keys = made.transform_column(Octets(column), PREFIX, first_seq)
    assert (None if column_keys is None else list(column_keys)) == (keys if values == column else None)


@pytest.mark.parametrize("name", sorted(TRANSFORMERS))
@settings(max_examples=300, deadline=None)
@given(column=st.lists(st.sampled_from(USUAL), max_size=3), times=st.integers(1, 3), first_seq=st.integers(1, 2**40))
def test_runs_of_usual_messages(name: str, column: list[bytes], times: int, first_seq: int) -> None:
    held(name, [message for message in column for _ in range(times)], first_seq)


@pytest.mark.parametrize("name", sorted(TRANSFORMERS))
@settings(max_examples=200, deadline=None)
@given(column=st.lists(messages(), max_size=3), cut=st.integers(0, 30))
def test_any_messages(name: str, column: list[Built], cut: int) -> None:
    octets = [built.octets for built in column]
    held(name, octets * 2, 1)
    held(name, [message[: len(message) - cut] for message in octets], 1)


@pytest.mark.parametrize("name", sorted(TRANSFORMERS))
def test_every_usual_message_alone_and_behind_another(name: str) -> None:
    for message in USUAL:
        held(name, [message], 1)
        held(name, [BODIES[0], message, message], 1)
