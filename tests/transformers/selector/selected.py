"""Messages with properties, and whether a selector takes them."""

from __future__ import annotations

from typing import Any

from transformers.codec import AmqpMap, Described, encode
from transformers.selector.selector import selector

DATA = b"\x00\x53\x75\xa0\x04body"


def message(properties: list[Any] | None = None, header: list[Any] | None = None, **application: Any) -> bytes:
    sections = [Described(0x70, header)] if header is not None else []
    sections += [Described(0x73, properties)] if properties is not None else []
    sections += [Described(0x74, AmqpMap(list(application.items())))] if application else []
    return b"".join(map(encode, sections)) + DATA


def matches(text: str, value: bytes) -> bool:
    return selector(text).select([value]) == [True]
