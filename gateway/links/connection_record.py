"""What operators are shown of a connection, besides who its peer is: since when, by which client library, and what
became of its deliveries. Microseconds since 1970; `since_s` is monotonic.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from gateway.frames.frames import Frame
from native_backend.clock import Clock
from transformers.codec import AmqpMap

_CONTAINER, _PROPERTIES = 0, 9  # in an open
_CHARACTERS: Final = 200  # of each name that a client gives itself


@dataclass(frozen=True, slots=True)
class ClientProduct:
    """As its OPEN names it; empty where it does not."""

    product: str = ""
    version: str = ""
    platform: str = ""


@dataclass(slots=True, eq=False)
class ConnectionRecord:
    """Of one connection. `number` is unique in a run; `totals`: its deliveries by direction and outcome."""

    number: int
    since_us: int
    since_s: float
    client: ClientProduct = ClientProduct()
    totals: Counter[tuple[str, str]] = field(default_factory=Counter)

    @classmethod
    def begun(cls, number: int, clock: Clock) -> ConnectionRecord:
        """Now."""
        return cls(number, clock.epoch_us(), clock.monotonic_s())

    def read(self, opened: Frame) -> str:
        """Take from an OPEN what it says of the client; its container-id."""
        properties = opened.field(_PROPERTIES)
        if isinstance(properties, AmqpMap):
            names = (properties.get(key) for key in ("product", "version", "platform"))
            self.client = ClientProduct(*(str(name or "")[:_CHARACTERS] for name in names))
        return str(opened.field(_CONTAINER) or "")
