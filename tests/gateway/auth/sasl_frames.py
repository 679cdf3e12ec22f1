"""SASL frames, written and read by hand."""

from __future__ import annotations

from transformers.codec import Described, Symbol, decode, encode


def frame(value: object, kind: int = 1, data_offset: int = 2) -> bytes:
    body = b"\0" * (4 * data_offset - 8) + encode(value)
    return (8 + len(body)).to_bytes(4, "big") + bytes((data_offset, kind, 0, 0)) + body


def init(mechanism: str = "ANONYMOUS", response: bytes | None = b"trace") -> bytes:
    return frame(Described(0x41, [Symbol(mechanism), response, "host"]))


def bodies(octets: bytes) -> list[Described]:
    """The frames that were sent."""
    values = []
    while octets:
        size = int.from_bytes(octets[:4], "big")
        assert octets[4:8] == b"\x02\x01\x00\x00"
        value, end = decode(octets[8:size])
        assert end == size - 8
        values.append(value)
        octets = octets[size:]
    return values
