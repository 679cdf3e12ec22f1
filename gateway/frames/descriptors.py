"""Descriptors by their names, `amqp:begin:list` for 0x11: proton reads numbers only, so what comes by name is given to
it by number. Performatives, termini, outcomes, delivery states, errors; what a message holds is not touched.

Pure values. Source: AMQP 1.0 part 1, 1.5; semantics 4.1. May import: `transformers.amqp_types`.
"""

from __future__ import annotations

import struct
from typing import Any, Final

from transformers.amqp_types import Described, Symbol, ULong, encode

_NUMBERS: Final = {
    f"amqp:{name}:list": number
    for number, names in (
        (0x10, "open begin attach flow transfer disposition detach end close"),
        (0x1D, "error"),
        (0x23, "received accepted rejected released modified source target"),
        (0x2B, "delete-on-close delete-on-no-links delete-on-no-messages delete-on-no-links-or-messages"),
        (0x30, "coordinator declare discharge declared transactional-state"),
    )
    for number, name in enumerate(names.split(), number)
}
_HEAD: Final = struct.Struct(">IBBH")


def numeric(value: Described) -> Described | None:
    """The same with numbers for the names that are known; None where there is none of those."""
    changed = _numeric(value)
    return changed if changed is not value else None


def framed(performative: Described, payload: bytes, channel: int) -> bytes:
    """As a frame."""
    body = encode(performative) + payload
    return _HEAD.pack(len(body) + 8, 2, 0, channel) + body


def _numeric(value: Any) -> Any:
    """`value` itself where nothing changes. Only lists are looked into: maps belong to the applications."""
    if isinstance(value, Described):
        number = _NUMBERS.get(value.descriptor) if isinstance(value.descriptor, Symbol) else None
        inner = _numeric(value.value)
        if number is None and inner is value.value:
            return value
        return Described(value.descriptor if number is None else ULong(number), inner)
    if isinstance(value, list):
        items = [_numeric(item) for item in value]
        return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
    return value
