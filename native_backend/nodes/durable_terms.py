"""On what terms a durable is held: by one link or by several, and how long it outlives them.

The terms of the latest attach hold. A *volatile* durable is a shared subscription without durability: it ends with the
last of its links. Times are seconds. Source: semantics.md 2.L, 3.3; AMQP 1.0 part 3, 3.5.5 and 3.5.6.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

Expiry = Literal["link-detach", "session-end", "connection-close", "never"]


@dataclass(frozen=True, slots=True)
class DurableTerms:
    """`durability` as in the source of the link: `none` makes it volatile. `expiry`: whose end begins the time-out."""

    shared: bool = False
    durability: str = "unsettled-state"
    expiry: Expiry = "never"
    timeout_s: int = 0
    selector: str = ""  # what it is for; empty: everything
    subscriber: tuple[str | None, str] | None = None
    """Container-id (None: all containers share it) and subscription, where the durable's name does not say them: an
    earlier release gave it, and it is this subscriber's now. See `durables.DurableName`."""

    @property
    def volatile(self) -> bool:
        return self.durability == "none"

    @property
    def kind(self) -> str:
        """For people."""
        return "volatile" if self.volatile else "shared" if self.shared else "exclusive"


EXCLUSIVE: Final = DurableTerms()
VOLATILE: Final = DurableTerms(shared=True, durability="none", expiry="link-detach")


def encode_terms(terms: DurableTerms) -> dict[str, Any]:
    """Nothing for those that every durable had before there were others: an earlier release can read that."""
    if terms == EXCLUSIVE:
        return {}
    terms_record = {"shared": int(terms.shared), "durability": terms.durability}
    more: dict[str, Any] = {"selector": terms.selector} if terms.selector else {}
    if terms.subscriber is not None:
        more["subscriber"] = terms.subscriber
    return {"terms": {**terms_record, "expiry": terms.expiry, "timeout_s": terms.timeout_s, **more}}


def decode_terms(record: dict[str, Any]) -> DurableTerms:
    """What `encode_terms` gave, in a durable's record."""
    terms_record = record.get("terms")
    if terms_record is None:
        return EXCLUSIVE
    lasting = terms_record["durability"], terms_record["expiry"], terms_record["timeout_s"]
    subscriber = terms_record.get("subscriber")
    return DurableTerms(
        bool(terms_record["shared"]),
        *lasting,
        terms_record.get("selector", ""),
        tuple(subscriber) if subscriber else None,
    )
