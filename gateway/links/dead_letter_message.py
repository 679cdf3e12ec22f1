"""A dead letter as its AMQP consumers and operators see it: the message as it was published but for its time to live,
and why it is here in message annotations (docs/how-to/dead-letters.md).
"""

from __future__ import annotations

from typing import Any, Final

from gateway.evidence.kept_detail import kept_detail, plain
from native_backend.events.copy_key import CopyOrigin
from transformers import annotated, annotations_of, without_expiry
from transformers.codec import Timestamp, UInt, ULong

_PREFIX: Final = "x-opt-dead-letter-"


def annotated_copy(value: bytes, origin: CopyOrigin) -> bytes:
    """The bare message keeps its octets, but for an absolute-expiry-time, which moves into an annotation: a client that
    looks at it would not show the letter to its application (ADR 0061)."""
    lasting, expiry = without_expiry(value)
    fields: dict[str, Any] = {
        f"{_PREFIX}cause": origin.cause,
        f"{_PREFIX}node": origin.node,
        f"{_PREFIX}durable": origin.durable,
        f"{_PREFIX}eid": ULong(origin.eid),
        f"{_PREFIX}attempts": UInt(origin.attempts),
        f"{_PREFIX}time": Timestamp(origin.at_ms),
    }
    if expiry is not None:
        fields[f"{_PREFIX}expiry"] = expiry
    if origin.detail is not None:
        error = kept_detail(origin.detail)
        parts = (("condition", error.condition), ("description", error.description), ("info", error.info))
        fields |= {f"{_PREFIX}{name}": part for name, part in parts if part}
    return annotated(lasting, fields)


def dead_letter_fields(value: bytes) -> dict[str, Any]:
    """What its annotations say, by their names without the prefix, as JSON has it; times in milliseconds since 1970.
    Empty: it is no dead letter. `value` is the message as consumers get it."""
    pairs = annotations_of(value).pairs
    fields = {
        name.removeprefix(_PREFIX): plain(annotation)
        for name, annotation in pairs
        if isinstance(name, str) and name.startswith(_PREFIX)
    }
    return fields if "cause" in fields else {}
