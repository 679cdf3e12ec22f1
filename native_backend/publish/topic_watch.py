"""Looks whether the topics of nodes are still the nodes' own: once a second of those that are published to, every few
seconds of all.

Kafka's producer goes on in a topic of the same name that was deleted and made again: what is then answered as stored
lies in a store that no node has, and no consumer gets it. Only the id tells. What is wrong with a node is shown as a
trouble, until it is mended or the node deleted.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable

from native_backend.dispatch.context import RealmContext
from native_backend.log.port import LogError, Topic
from native_backend.nodes.broken_nodes import Broken, find
from native_backend.nodes.node import Node
from native_backend.state.troubles import TOPIC_KINDS

_LOG = logging.getLogger(__name__)
Found = tuple[dict[str, Topic], dict[str, Broken]]


class TopicWatch:
    """Watches the topics of the nodes in `used`, which publishing fills by store. Calls `lose` for each node whose
    topic was replaced."""

    def __init__(self, context: RealmContext, lose: Callable[[Node], None]) -> None:
        self.used: dict[int, Node] = {}
        self._context = context
        self._metadata = context.metadata
        self._lose = lose
        self._wide: set[bytes] = set()  # topics that have more partitions than their node; told once
        self._round: deque[str] = deque()  # names of nodes that are still to be looked at in this one
        self._round_s = 0.0  # when the next one begins
        self._timer = context.timers.timer("topic watch", self._look)
        self._timer.soon()

    def open(self) -> None:
        """Look at all nodes. Blocks; raises LogError."""
        nodes = list(self._metadata.nodes.values())
        self._judge(nodes, *self._find(nodes))

    def _look(self) -> None:
        nodes, self.used = {node.name: node for node in self.used.values()} | self._of_round(), {}
        if nodes:
            batch = list(nodes.values())
            self._context.worker.submit(lambda: self._find(batch), lambda topics: self._found(batch, topics))
        else:
            self._timer.after(self._context.limits.topic_look_s)

    def _of_round(self) -> dict[str, Node]:
        """The next few of all nodes."""
        now_s, limits, known = self._context.clock.monotonic_s(), self._context.limits, self._metadata.nodes
        if not self._round and now_s >= self._round_s:
            self._round_s = now_s + limits.topic_round_s
            self._round.extend(known)
            self._forget_deleted()
        names = [self._round.popleft() for _ in range(min(len(self._round), limits.topic_round_nodes))]
        return {name: known[name] for name in names if name in known}

    def _forget_deleted(self) -> None:
        """End the troubles of deleted nodes."""
        for trouble in self._context.troubles.present():
            if trouble.kind in TOPIC_KINDS and trouble.about not in self._metadata.nodes:
                self._context.troubles.end(trouble.kind, trouble.about)

    def _find(self, nodes: list[Node]) -> Found:
        return find(self._context.log, nodes, self._context.limits.control_deadline_s)

    def _found(self, nodes: list[Node], reply: Found | LogError) -> None:
        self._timer.after(self._context.limits.topic_look_s)
        if not isinstance(reply, LogError):
            self._judge(nodes, *reply)

    def _judge(self, nodes: list[Node], topics: dict[str, Topic], broken: dict[str, Broken]) -> None:
        for node in nodes:
            now = self._metadata.nodes.get(node.name)
            if now is None or now.topic_id != node.topic_id:
                continue  # it was deleted
            wrong, topic = broken.get(node.name), topics.get(node.topic)
            self._tell(node, wrong)
            if not self._metadata.alive(node):
                continue
            if wrong is not None and wrong.how == "made-again":
                _LOG.error("topic %s was created again: node %r has lost its events; delete it", node.topic, node.name)
                self._metadata.forget(node)
                self._lose(node)
            elif topic is not None and topic.partitions > node.partitions and node.topic_id not in self._wide:
                self._wide.add(node.topic_id)
                _LOG.warning(
                    "topic %s has %d partitions, node %r only the first %d: events in the others are not delivered; "
                    "realmgate node set %s partitions=%d takes them in",
                    node.topic,
                    topic.partitions,
                    node.name,
                    node.partitions,
                    node.name,
                    topic.partitions,
                )

    def _tell(self, node: Node, wrong: Broken | None) -> None:
        troubles = self._context.troubles
        for kind in TOPIC_KINDS:
            if wrong is not None and kind == f"topic-{wrong.how}":
                troubles.begin(kind, wrong.detail, node.name)
            else:
                troubles.end(kind, node.name)
