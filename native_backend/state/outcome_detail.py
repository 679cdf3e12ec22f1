"""What a consumer says of deliveries beside the name of its outcome: the error of `rejected`, the annotations of
`modified`.

Maps are AMQP octets: the realm carries them, and does not look into them. Source: AMQP 1.0 part 3, 3.4.3 and 3.4.5.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OutcomeDetail:
    """Empty where the consumer said nothing of it."""

    condition: str = ""
    description: str = ""
    info: bytes = b""
    """A map, encoded."""
    annotations: bytes = b""
    """A map, encoded: message-annotations of `modified`."""
