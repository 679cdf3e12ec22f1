"""Which nodes have no topic of their own any more, one by one: a broken node must not keep anything from the others.

Used by the realm while it serves and by commands beside it. Blocks; raises LogError only when the log itself cannot be
asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from native_backend.log.port import Log, LogError, Topic
from native_backend.nodes.node import Node

_UNANSWERED = 20  # questions about absent topics that wait for their deadlines; the others have the same answer
_ASKED_S = 2.0
How = Literal["missing", "made-again", "unavailable"]
REMEDIES: Mapping[How, str] = {
    "missing": "its events are gone: realmgate node delete NODE, then node create it anew",
    "made-again": "that topic is not the node's: realmgate node delete NODE, then node create it anew",
    "unavailable": "give every partition of its topic a leader: start its brokers",
}


@dataclass(frozen=True, slots=True)
class Broken:
    """Why a node cannot be used. `missing`, `made-again`: for good, unless it is deleted."""

    how: How
    detail: str

    @property
    def remedy(self) -> str:
        """What an operator does about it."""
        return REMEDIES[self.how]


def find(log: Log, nodes: Iterable[Node], deadline_s: float) -> tuple[dict[str, Topic], dict[str, Broken]]:
    """The topics that there are, by name; and what is wrong, by node."""
    nodes = list(nodes)
    topics = log.control.find_topics([node.topic for node in nodes], deadline_s)
    broken: dict[str, Broken] = {}
    unanswered = 0
    for node in nodes:
        wrong = _judged(log, node, topics, unanswered < _UNANSWERED)
        if wrong is not None:
            broken[node.name] = wrong
            unanswered += wrong.how == "unavailable"
    return topics, broken


def _judged(log: Log, node: Node, topics: Mapping[str, Topic], may_ask: bool) -> Broken | None:
    topic = topics.get(node.topic)
    if topic is not None and topic.id == node.topic_id:
        return None
    if topic is not None:
        return Broken("made-again", f"topic {node.topic} was deleted and made again")
    if may_ask:
        try:
            log.control.bounds(node.topic, node.partition, _ASKED_S)
        except LogError as error:
            if error.failure.cause == "not-found":
                return Broken("missing", f"topic {node.topic} is not there")
    return Broken("unavailable", f"topic {node.topic} cannot be used now")
