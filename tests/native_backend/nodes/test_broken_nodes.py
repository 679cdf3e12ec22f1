"""What is wrong with a node's topic is asked about each, however many there are."""

from __future__ import annotations

from typing import Any

import pytest

from native_backend.log.port import Cause, Failure, LogError, Topic
from native_backend.nodes.broken_nodes import find
from native_backend.nodes.node import Node

COUNT = 50
NODES = [Node(f"n{at}", "queue", f"um.node.n{at}", b"\x07" * 16, at) for at in range(COUNT)]


class Absent:
    """A log that has no such topics, or says nothing of them."""

    def __init__(self, cause: Cause, topics: dict[str, Topic] | None = None) -> None:
        self.control: Any = self
        self.asked = 0
        self._cause, self._found = cause, topics or {}

    def find_topics(self, names: list[str], deadline_s: float) -> dict[str, Topic]:
        return self._found

    def bounds(self, topic: str, partition: int, deadline_s: float) -> tuple[int, int]:
        self.asked += 1
        raise LogError(Failure(self._cause))


def test_each_missing_topic_is_known_as_missing() -> None:
    """Also behind many of which another thing is wrong."""
    others = {node.topic: Topic(node.topic, b"\x08" * 16, 1) for node in NODES[:25]}
    for topics in ({}, others):
        broken = find(Absent("not-found", topics), NODES, 1.0)[1]  # type: ignore[arg-type]
        assert [defect.how for defect in broken.values()] == [
            "made-again" if node.topic in topics else "missing" for node in NODES
        ]


@pytest.mark.parametrize("cause", ["unavailable", "indeterminate"])
def test_a_log_that_does_not_answer_is_not_waited_for_by_each(cause: Cause) -> None:
    log = Absent(cause)
    broken = find(log, NODES, 1.0)[1]  # type: ignore[arg-type]
    assert {defect.how for defect in broken.values()} == {"unavailable"}
    assert (len(broken), log.asked) == (COUNT, 20)
