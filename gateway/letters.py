"""A dead letter as its AMQP consumers see it: the message as it was published, and why it is here in message
annotations (docs/how-to/dead-letters.md). May import: `native_backend`, `transformers`.
"""

from __future__ import annotations

from native_backend.letter import Letter
from transformers import annotated
from transformers.amqp_types import Timestamp, UInt, ULong


def annotated_letter(value: bytes, letter: Letter) -> bytes:
    """The bare message keeps its octets."""
    return annotated(
        value,
        {
            "x-opt-dead-letter-cause": letter.cause,
            "x-opt-dead-letter-node": letter.node,
            "x-opt-dead-letter-durable": letter.durable,
            "x-opt-dead-letter-eid": ULong(letter.eid),
            "x-opt-dead-letter-attempts": UInt(letter.attempts),
            "x-opt-dead-letter-time": Timestamp(letter.at_ms),
        },
    )
