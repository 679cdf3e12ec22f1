"""What the header of a message that is delivered again says of earlier attempts. Source: AMQP 1.0, 3.2.1."""

from __future__ import annotations

from native_backend.events.batch import DeliveryBatch
from transformers import redelivered_header


def marked(delivered: DeliveryBatch) -> list[bytes]:
    """The messages, with what their headers have to say of earlier attempts."""
    values = delivered.values
    if delivered.failed is None and delivered.again is None:
        return values
    failed = delivered.failed or [0] * len(values)
    again = delivered.again or [False] * len(values)
    return [
        redelivered_header(value, count, seen) if count or seen else value
        for value, count, seen in zip(values, failed, again, strict=True)
    ]
