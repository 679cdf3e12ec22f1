"""Message annotations that the gateway adds to a stored message: what is behind them keeps its octets.

Errors: none; what is no message comes back as it is. Source: seed 001 section 3.2.3. May import: `transformers`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from transformers.amqp_types import AmqpMap, DecodeError, Described, Symbol, ULong, decode, encode
from transformers.sections import MESSAGE_ANNOTATIONS, PROPERTIES, section_offsets

_CODE = 0x72


def annotated(value: bytes, annotations: Mapping[str, Any]) -> bytes:
    """`value`, a message as it is stored, with these annotations; one of the same name is replaced."""
    try:
        offsets = section_offsets(value)
        end = min(offset for offset in offsets[PROPERTIES:] if offset >= 0)
        begin = offsets[MESSAGE_ANNOTATIONS]
        kept = _pairs(value[begin:end], annotations) if begin >= 0 else []
    except DecodeError:
        return value
    added = [(Symbol(name), each) for name, each in annotations.items()]
    section = encode(Described(ULong(_CODE), AmqpMap(kept + added)))
    return value[: begin if begin >= 0 else end] + section + value[end:]


def _pairs(section: bytes, replaced: Mapping[str, Any]) -> list[tuple[Any, Any]]:
    found, _ = decode(section)
    if not isinstance(found, Described) or not isinstance(found.value, AmqpMap):
        raise DecodeError(0, "annotations are a map")
    return [(key, each) for key, each in found.value.pairs if key not in replaced]
