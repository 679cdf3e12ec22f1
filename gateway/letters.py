"""A dead letter as its AMQP consumers see it: the message as it was published but for its time to live, and why it is
here in message annotations (docs/how-to/dead-letters.md). May import: `native_backend`, `transformers`.
"""

from __future__ import annotations

from typing import Any

from native_backend.letter import Letter
from transformers import annotated, without_expiry
from transformers.amqp_types import Timestamp, UInt, ULong


def annotated_letter(value: bytes, letter: Letter) -> bytes:
    """The bare message keeps its octets, but for an absolute-expiry-time, which moves into an annotation: a client that
    looks at it would not show the letter to its application (ADR 0061)."""
    lasting, expiry = without_expiry(value)
    said: dict[str, Any] = {
        "x-opt-dead-letter-cause": letter.cause,
        "x-opt-dead-letter-node": letter.node,
        "x-opt-dead-letter-durable": letter.durable,
        "x-opt-dead-letter-eid": ULong(letter.eid),
        "x-opt-dead-letter-attempts": UInt(letter.attempts),
        "x-opt-dead-letter-time": Timestamp(letter.at_ms),
    }
    if expiry is not None:
        said["x-opt-dead-letter-expiry"] = expiry
    return annotated(lasting, said)
