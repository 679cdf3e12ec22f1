"""Why a store was not read: what became of its topic comes before what kept us from reading it."""

from __future__ import annotations

import pytest

from reconciliation.model.ranges import GONE, Extent, Range, Unread
from reconciliation.model.realm_nodes import Node
from reconciliation.read.catalog import absence

NODE = Node("orders", "queue", "um.node.orders", bytes(range(16)), 7)
OURS, OTHER = NODE.topic_id.hex(), bytes(16).hex()
READ = (Range(NODE.topic, 0, 0, 5),)
NO_LEADER = (Unread(NODE.topic, 0, "no broker leads this partition now: run again when one does"),)
DENIED = (Unread(NODE.topic, None, "we may not look at this topic: grant Describe and Read on it"),)


@pytest.mark.parametrize(
    ("topics", "ranges", "unread", "words"),
    [
        ({NODE.topic: OURS}, READ, (), ""),
        ({NODE.topic: OURS}, READ, NO_LEADER, ""),
        ({NODE.topic: OURS}, (), NO_LEADER, "no broker leads"),
        ({NODE.topic: OURS}, (), (), "no partition 0"),
        ({NODE.topic: OTHER}, READ, (), "another one made of its name"),
        ({NODE.topic: OTHER}, (), NO_LEADER, "another one made of its name"),
        ({NODE.topic: ""}, (), DENIED, "may not look at"),
        ({}, (), (), GONE),
    ],
)
def test_why_a_store_was_not_read(
    topics: dict[str, str], ranges: tuple[Range, ...], unread: tuple[Unread, ...], words: str
) -> None:
    why = absence(Extent(ranges, (), topics, unread), NODE)
    assert bool(why) == bool(words)
    assert words in why
