"""What the realm answers: completions as values, with the native answers that the mapping tables know as an axis.

Every list is a column: element i of each speaks of delivery i. May import: the standard library, `native_backend` only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from native_backend.durables import Durable
    from native_backend.nodes import Node
    from native_backend.subscription import Subscription

PublishAnswer = Literal[
    "stored",
    "access-denied",
    "capacity-reached",
    "unexpected",
    "not-found",
    "too-large",
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
    "purge",
    "seek",
    "delete",
    "move",
]
NodeKind = Literal["queue", "channel"]


@dataclass(frozen=True, slots=True)
class Published:
    """Events `first .. first + len(eids) - 1` of the batch that `owner` handed in have this answer; eid -1 where not
    stored."""

    owner: Any
    first: int
    eids: list[int]
    answer: PublishAnswer
    native: str = ""  # the log's own error code, for the error matrix


@dataclass(frozen=True, slots=True)
class NodeFound:
    """Answer to `find_node` and `create_node`: the node, or None when realm metadata, read to its end, has none."""

    owner: Any
    node: Node | None
    answer: SubscribeAnswer
    native: str = ""


@dataclass(frozen=True, slots=True)
class DurablesFound:
    """Answer to `find_durables`: none unless the answer is ready."""

    owner: Any
    durables: list[Durable]
    answer: SubscribeAnswer
    native: str = ""


@dataclass(frozen=True, slots=True)
class Subscribed:
    """Answer to `subscribe`: `subscription` is None unless the answer is ready."""

    owner: Any
    subscription: Subscription | None
    answer: SubscribeAnswer
    native: str = ""


@dataclass(frozen=True, slots=True)
class SubscriptionLost:
    """A subscription failed later: its node was deleted (not-found), its shard was claimed by another gateway
    (in-use), ... It gives no more events; what it has outstanding need not be settled."""

    owner: Any
    subscription: Subscription
    answer: SubscribeAnswer
    native: str = ""


@dataclass(frozen=True, slots=True)
class Settled:
    """A `settle` call is in the journal, or is not."""

    owner: Any
    answer: SettleAnswer
    native: str = ""


@dataclass(frozen=True, slots=True)
class Committed:
    """A unit is stored as a whole (`done`, with the offset of each of its writes), or not at all."""

    owner: Any
    answer: CommitAnswer
    offsets: list[int]
    native: str = ""


@dataclass(frozen=True, slots=True)
class Commanded:
    """A command of an operator was carried out, or was not. `count`: EIDs concerned, gaps included."""

    owner: Any
    answer: CommandAnswer
    count: int
    detail: str


Answer = Published | NodeFound | DurablesFound | Subscribed | SubscriptionLost | Settled | Committed | Commanded
