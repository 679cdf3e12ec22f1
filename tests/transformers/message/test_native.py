"""What a plain producer wrote, as a message: text is a string value, all else is octets and says so."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from transformers.codec import Symbol, decode
from transformers.message.native import message_of
from transformers.message.sections import BODY, section_offsets


@given(st.text())
def test_text_is_an_amqp_value_without_content_type(text: str) -> None:
    value, end = decode(message_of(text.encode()))
    assert (value.descriptor, value.value) == (0x77, text)
    assert end == len(message_of(text.encode()))


@given(st.binary(min_size=1).map(lambda octets: b"\xff" + octets))  # \xff begins no UTF-8
def test_anything_else_is_octets(octets: bytes) -> None:
    message = message_of(octets)
    properties, at = decode(message)
    assert (properties.descriptor, properties.value) == (0x73, [None] * 6 + [Symbol("application/octet-stream")])
    data, end = decode(message, at)
    assert (data.descriptor, data.value, end) == (0x75, octets, len(message))


@given(st.binary())
def test_it_is_always_a_message_with_a_body(octets: bytes) -> None:
    assert section_offsets(message_of(octets))[BODY] >= 0
