"""The realm's words: kinds of nodes, the journal's operations, and the answers that the mapping tables know as axes."""

from __future__ import annotations

from typing import Final, Literal

PublishAnswer = Literal[
    "stored",
    "access-denied",
    "capacity-reached",
    "unexpected",
    "not-found",
    "too-large",
    "invalid",
    "indeterminate",
    "unavailable",
    "rolled-back",  # no realm says so: the transaction that it was published in was not committed
]
PostAnswer = Literal["ready", "access-denied", "capacity-reached", "unexpected", "not-found"]
SubscribeAnswer = Literal[
    "ready",
    "access-denied",
    "unexpected",
    "not-found",
    "selector-invalid",
    "already-subscribed",
    "in-use",
    "kind-differs",  # shared where it is known as exclusive, or the other way round
    "indeterminate",
    "unavailable",  # for now, and certainly not done: never of what is held already, which is asked again
]
SettleAnswer = Literal["done", "access-denied", "not-found", "unexpected", "indeterminate"]
CommitAnswer = Literal[
    "done", "access-denied", "capacity-reached", "not-found", "too-large", "unexpected", "indeterminate"
]
EvidenceTopic = Literal["outcomes", "tables", "commands", "answers"]
"""Where the gateway writes what it did; the last two: what an operator made it do beside the realm's commands."""
HISTORY: Final = "history"
"""The topic of what was counted in each minute."""
CommandAnswer = Literal["done", "access-denied", "not-found", "in-use", "unavailable", "unexpected", "indeterminate"]
Operation = Literal[
    "acknowledge",
    "return",
    "discard",
    "dead-letter",
    "expired",
    "filtered",
    "evicted",
    "trimmed",
    "lost",
    "truncated",
    "purge",
    "seek",
    "delete",
    "move",
    "recorded",
]
NodeKind = Literal["queue", "channel"]


def history_topic(prefix: str) -> str:
    return f"{prefix}.{HISTORY}"
