"""What the realm answers: completions as values, with the native answers that the mapping tables know as an axis.

Every list is a column: element i of each speaks of delivery i.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from native_backend.nodes.durable import Durable
from native_backend.nodes.node import Node
from native_backend.nodes.words import CommandAnswer, CommitAnswer, PublishAnswer, SettleAnswer, SubscribeAnswer


@dataclass(frozen=True, slots=True)
class Published:
    """Events `first .. first + len(eids) - 1` of the batch that `owner` handed in have this answer; eid -1 where not
    stored."""

    owner: Any
    first: int
    eids: list[int]
    answer: PublishAnswer
    native: str = ""  # a code: the log's own, or a word of the realm's; never a sentence


@dataclass(frozen=True, slots=True)
class NodeFound:
    """Answer to `find_node` and `create_node`: the node, or None when realm metadata, read to its end, has none.
    `words`: why it was not made, for the operator."""

    owner: Any
    node: Node | None
    answer: SubscribeAnswer
    native: str = ""
    words: str = ""


@dataclass(frozen=True, slots=True)
class NodeSized:
    """Answer to `event_sizes.ask`: so many octets an event of that node may have."""

    owner: Any
    node: Node
    bytes_max: int


@dataclass(frozen=True, slots=True)
class DurablesFound:
    """Answer to `find_durables`: none unless the answer is ready."""

    owner: Any
    durables: list[Durable]
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
    """A unit is stored as a whole (`done`, with the offset of each of its writes), or not at all. `node`: the one that
    it failed for, where that is known."""

    owner: Any
    answer: CommitAnswer
    offsets: list[int]
    native: str = ""
    node: str = ""


@dataclass(frozen=True, slots=True)
class Commanded:
    """A command of an operator was carried out, or was not. `count`: EIDs concerned, gaps included."""

    owner: Any
    answer: CommandAnswer
    count: int
    detail: str


@dataclass(frozen=True, slots=True)
class HistoryStored:
    """A record of the history is stored, or is not known to be."""

    owner: Any
    stored: bool
    native: str = ""


@dataclass(frozen=True, slots=True)
class HistoryFound:
    """Records of the history in their order; none unless the answer is ready. `position`: where to read on; None: there
    is nothing more. `oldest`: the first record that is kept, where the question was for a time."""

    owner: Any
    offsets: list[int]
    values: list[bytes]
    position: int | None
    oldest: bytes | None
    answer: SubscribeAnswer
    native: str = ""


class Answer(Protocol):
    """Any of them: `owner` is what was handed in with the call."""

    @property
    def owner(self) -> Any: ...
