"""Work of several links that is done as a whole or not at all: a unit for the journal, once it is sure that every
node is there.

May import: the standard library, `native_backend` below it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from native_backend.answers import CommitAnswer, Committed
from native_backend.log import Write
from native_backend.metadata import Metadata
from native_backend.nodes import Node
from native_backend.services import Services
from native_backend.settlement import Settlement, Unit


@dataclass(frozen=True, slots=True)
class Posting:
    """Events for one node, in order; keys and values have equal length."""

    node: Node
    keys: list[bytes]
    values: list[bytes]


def commit(
    services: Services,
    metadata: Metadata,
    settlements: list[Settlement],
    postings: Sequence[Posting],
    owner: object,
) -> None:
    """Answered by one `Committed`, with the offsets of all postings in order. Unless it is done, the settlements stay
    in the caller's hands."""
    answer = _obstacle(metadata, settlements, postings)
    if answer is not None:
        count = sum(len(posting.keys) for posting in postings)
        services.answer(Committed(owner, answer, [-1] * count, "deleted"))
        return
    writes = [
        Write(posting.node.topic, 0, key, value)
        for posting in postings
        for key, value in zip(posting.keys, posting.values, strict=True)
    ]
    services.journal.add_unit(Unit(settlements, writes, owner, restores=False))


def _obstacle(metadata: Metadata, settlements: list[Settlement], postings: Sequence[Posting]) -> CommitAnswer | None:
    if not all(metadata.alive(posting.node) for posting in postings):
        return "not-found"
    if not all(settlement.keeper.keys()[2] in metadata.stores for settlement in settlements):
        return "not-found"
    return None
