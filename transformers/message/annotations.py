"""Message annotations that the gateway adds to a stored message, and reads: what is behind them keeps its octets.

Errors: none; what is no message comes back as it is. Source: seed 001 section 3.2.3.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from transformers.codec import AmqpMap, DecodeError, Described, Symbol, ULong, decode, encode
from transformers.message.sections import MESSAGE_ANNOTATIONS, PROPERTIES, section_offsets

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
    added = [(Symbol(name), annotation) for name, annotation in annotations.items()]
    section = encode(Described(ULong(_CODE), AmqpMap(kept + added)))
    return value[: begin if begin >= 0 else end] + section + value[end:]


def annotations_of(value: bytes) -> AmqpMap:
    """Those of a message as it is stored, in wire order; none of what cannot be read."""
    try:
        begin = section_offsets(value)[MESSAGE_ANNOTATIONS]
        section = decode(value, begin)[0] if begin >= 0 else None
    except DecodeError:
        section = None
    return section.value if isinstance(section, Described) and isinstance(section.value, AmqpMap) else AmqpMap([])


def _pairs(section: bytes, replaced: Mapping[str, Any]) -> list[tuple[Any, Any]]:
    decoded, _ = decode(section)
    if not isinstance(decoded, Described) or not isinstance(decoded.value, AmqpMap):
        raise DecodeError(0, "annotations are a map")
    return [(key, value) for key, value in decoded.value.pairs if key not in replaced]
