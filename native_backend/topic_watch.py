"""Looks once a second whether the topics that are published to are still the nodes' own.

Kafka's producer goes on in a topic of the same name that somebody deleted and made again: what is then answered as
stored lies in a store that no node has, and nobody would get it. Only the id tells. A topic that is not there proves
nothing (it may have no leader just now); appending to it says so itself. May import: the standard library,
`native_backend` below it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from native_backend.log import LogError, Topic
from native_backend.metadata import Metadata
from native_backend.nodes import Node
from native_backend.services import Services

_LOG = logging.getLogger(__name__)


class TopicWatch:
    """Of the nodes in `used`, which whoever publishes fills by store; `lose` is told of each whose topic is another."""

    def __init__(self, services: Services, metadata: Metadata, lose: Callable[[Node], None]) -> None:
        self.used: dict[int, Node] = {}
        self._services = services
        self._metadata = metadata
        self._lose = lose
        self._wide: set[bytes] = set()  # topics that have more partitions than their node; told once
        self._looking = False
        self._look_s = 0.0

    def open(self) -> None:
        """Look at all nodes. Blocks; raises LogError."""
        nodes = list(self._metadata.nodes.values())
        self._judge(nodes, self._find(nodes))

    def advance(self) -> None:
        if self._looking or not self.used or self._services.clock.monotonic_s() < self._look_s:
            return
        nodes, self.used = list(self.used.values()), {}
        self._looking = True
        self._services.control.submit(lambda: self._find(nodes), lambda found: self._found(nodes, found))

    def _find(self, nodes: list[Node]) -> dict[str, Topic]:
        names = [node.topic for node in nodes]
        return self._services.log.find_topics(names, self._services.limits.control_deadline_s)

    def _found(self, nodes: list[Node], found: dict[str, Topic] | LogError) -> None:
        self._looking = False
        self._look_s = self._services.clock.monotonic_s() + self._services.limits.topic_look_s
        if not isinstance(found, LogError):
            self._judge(nodes, found)

    def _judge(self, nodes: list[Node], found: dict[str, Topic]) -> None:
        for node in nodes:
            topic = found.get(node.topic)
            if topic is None or not self._metadata.alive(node):
                continue
            if topic.id != node.topic_id:
                _LOG.error("topic %s was made again: node %r has lost it; delete the node", node.topic, node.name)
                self._metadata.bury(node)
                self._lose(node)
            elif topic.partitions > node.partitions and node.topic_id not in self._wide:
                self._wide.add(node.topic_id)
                _LOG.warning(
                    "topic %s has %d partitions, node %r only the first %d: nobody gets what is in the others; "
                    "realmgate node set %s partitions=%d takes them in",
                    node.topic,
                    topic.partitions,
                    node.name,
                    node.partitions,
                    node.name,
                    topic.partitions,
                )
