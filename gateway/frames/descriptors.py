"""Descriptors by their names, `amqp:begin:list` for 0x11: proton reads numbers only, so what comes by name is given to
it by number. Performatives, termini, outcomes, delivery states, errors; what a message holds is not touched.

A delivery state of a name that is not known gets a number that is not known, too: without it proton would take the
disposition for one that states nothing. Pure values. Source: AMQP 1.0 part 1, 1.5; semantics 4.1.
"""

from __future__ import annotations

import struct
from typing import Any, Final

from gateway.frames.frames import DISPOSITION
from gateway.frames.performatives import COMPOSITES
from transformers.codec import Described, Symbol, ULong, encode

NUMBERS: Final = {composite.symbol: code for code, composite in COMPOSITES.items()}
_NO_STATE: Final = ULong(0xFFFF_FFFF_FFFF_FFFF)  # a descriptor that AMQP does not define
_STATE_AT: Final = 4  # in a disposition
_HEAD: Final = struct.Struct(">IBBH")


def numeric(value: Described) -> Described | None:
    """The same with numbers for the names that are known, and for a disposition's state of another name; None where
    there is none of those."""
    changed = _numeric(value)
    if changed.descriptor == DISPOSITION and isinstance(changed.value, list):
        changed = _with_numbered_state(changed)
    return changed if changed is not value else None


def framed(performative: Described, payload: bytes, channel: int) -> bytes:
    """As a frame."""
    body = encode(performative) + payload
    return _HEAD.pack(len(body) + 8, 2, 0, channel) + body


def _with_numbered_state(disposition: Described) -> Described:
    fields = disposition.value
    state = fields[_STATE_AT] if len(fields) > _STATE_AT else None
    if not isinstance(state, Described) or not isinstance(state.descriptor, Symbol):
        return disposition
    numbered = Described(_NO_STATE, state.value)
    return Described(disposition.descriptor, [*fields[:_STATE_AT], numbered, *fields[_STATE_AT + 1 :]])


def _numeric(value: Any) -> Any:
    """`value` itself where nothing changes. Only lists are looked into: maps belong to the applications."""
    if isinstance(value, Described):
        number = NUMBERS.get(value.descriptor) if isinstance(value.descriptor, Symbol) else None
        inner = _numeric(value.value)
        if number is None and inner is value.value:
            return value
        return Described(value.descriptor if number is None else ULong(number), inner)
    if isinstance(value, list):
        items = [_numeric(item) for item in value]
        return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
    return value
