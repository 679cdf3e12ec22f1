"""Temporary nodes: queues and channels of the realm like any other, but that they are made and deleted for one peer.

Each is a record of the metadata on a topic of its own, `PREFIX.temporary.RANDOM`; so whatever goes for events goes for
theirs, and every process of the realm finds them. Their topics come from `temporary_topics.py`. Only the peer that
created a node consumes from it, and every user may publish to it. The next process that opens the realm deletes the
nodes of a killed one. Source: semantics.md 2.M; ADR 0059.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from native_backend.dispatch.context import RealmContext, subscribe_answer
from native_backend.log.port import LogError, Topic
from native_backend.nodes.answers import NodeFound
from native_backend.nodes.durable import durable_key, encode_durable, queue_durable
from native_backend.nodes.grants import Subject
from native_backend.nodes.metadata import read_tail, realm_topic
from native_backend.nodes.node import Node, encode_node, node_key, store_id
from native_backend.nodes.properties import Grant, Properties
from native_backend.nodes.words import NodeKind
from native_backend.shard.shard import Shard
from native_backend.temporary.topics import TemporaryTopics

_OWN = frozenset({"publish", "subscribe", "peek", "durable"})
Then = Callable[[LogError | None], None]


class TemporaryNodes:
    """See the module's docstring."""

    def __init__(self, context: RealmContext, shard: Shard, follow: Callable[[Then], None]) -> None:
        """`follow` reads metadata to its end."""
        self._context = context
        self._metadata = context.metadata
        self._shard = shard
        self._follow = follow
        self._left: list[str] = []  # topics of an earlier process
        self._writes: list[tuple[list[bytes], Sequence[bytes | None], Then]] = []
        self._writing = False
        self._prefix = f"{context.prefix}.temporary."
        self._topics = TemporaryTopics(context, self._prefix)

    # -- at the start

    def sweep(self) -> None:
        """End what an earlier process has left. Blocks; raises LogError."""
        log, topic, deadline_s = (
            self._context.log,
            realm_topic(self._context.prefix),
            self._context.limits.control_deadline_s,
        )
        nodes = [node for node in self._metadata.nodes.values() if node.temporary]
        names = {node.name for node in nodes}
        keys = [durable_key(*key) for key in self._metadata.durables if key[0] in names]
        if nodes:
            keys += [node_key(name) for name in names]
            log.control.put_all(topic, keys, [None] * len(keys), deadline_s)
            self._metadata.fold(read_tail(log, topic, self._metadata.position))
        self._left = [*log.control.topics(self._prefix, deadline_s)]

    def begin(self) -> None:
        """The realm is open: their topics go."""
        left, self._left = self._left, []
        for topic in left:
            self._topics.drop(topic)

    def close(self) -> None:
        """No more turns come: delete the topics that are not in use."""
        self._topics.close()

    # -- making

    def create(self, name: str, kind: NodeKind, subject: Subject, owner: object) -> None:
        """Answered by `NodeFound`. The name must be unique."""
        self._topics.take(lambda topic: self._made(topic, name, kind, subject, owner))

    def _made(self, topic: Topic | LogError, name: str, kind: NodeKind, subject: Subject, owner: object) -> None:
        if isinstance(topic, LogError):
            self._failed(owner, topic)
            return
        context, store = self._context, store_id(topic.id)
        if store in self._metadata.stores:  # one of 10^12
            self._topics.drop(topic.name)
            self.create(name, kind, subject, owner)
            return
        now_us = context.clock.epoch_us()
        acl = (Grant(f"user:{subject.user}", _OWN), Grant("*", frozenset({"publish"})))
        node = Node(name, kind, topic.name, topic.id, store, Properties(acl=acl), created_us=now_us, temporary=True)
        keys, values = [node_key(name)], [encode_node(node, now_us)]
        if kind == "queue":  # first: who sees the node sees its durable
            durable = queue_durable(context.prefix, node, [0])
            keys.insert(0, durable_key(name, durable.name))
            values.insert(0, encode_durable(durable, now_us))
        self._put(keys, values, lambda error: self._answer(owner, name, error))

    def _put(self, keys: list[bytes], values: Sequence[bytes | None], done: Then) -> None:
        """Write metadata, then read it: one call at a time, for all who want that since the last one."""
        self._writes.append((keys, values, done))
        self._write()

    def _write(self) -> None:
        if self._writing or not self._writes:
            return
        self._writing, writes, self._writes = True, self._writes, []
        keys = [key for batch, _, _ in writes for key in batch]
        values = [value for _, batch, _ in writes for value in batch]
        context, topic = self._context, realm_topic(self._context.prefix)

        def written(result: list[int] | LogError) -> None:
            if isinstance(result, LogError):
                read(result)
            else:
                self._follow_to(result[-1], read)

        def read(error: LogError | None) -> None:
            self._writing = False
            for _, _, done in writes:
                done(error)
            self._write()

        deadline_s = context.limits.control_deadline_s
        context.worker.submit(lambda: context.log.control.put_all(topic, keys, values, deadline_s), written)

    def _follow_to(self, offset: int, done: Then) -> None:
        """What is stored may be seen a little later."""

        def followed(error: LogError | None) -> None:
            if error is None and self._metadata.position <= offset:
                self._follow_to(offset, done)
            else:
                done(error)

        self._follow(followed)

    def _answer(self, owner: object, name: str, error: LogError | None) -> None:
        if error is not None:
            self._failed(owner, error)
        else:
            self._context.answer(NodeFound(owner, self._metadata.nodes.get(name), "ready"))

    def _failed(self, owner: object, error: LogError) -> None:
        self._context.answer(NodeFound(owner, None, subscribe_answer(error.failure), error.failure.code))

    # -- ending

    def delete(self, node: Node, owner: object) -> None:
        """Answered by `NodeFound` without a node once no process finds it any more; its links have been closed."""
        names = [durable.name for durable in self._metadata.durables.values() if durable.node == node.name]
        keys = [*(durable_key(node.name, name) for name in names), node_key(node.name)]

        def gone(error: LogError | None) -> None:
            if error is not None:
                self._failed(owner, error)
                return
            self._context.answer(NodeFound(owner, None, "ready"))
            self._topics.drop(node.topic)

        self._put(keys, [None] * len(keys), gone)

    def delete_empty(self, node: Node, owner: object) -> None:
        """The same where it has no messages; else answered with the node. What a channel's durables still want are its
        messages; what its other subscribers do not have yet are none."""
        context = self._context
        unread = self._unread(node)
        if unread is None:
            context.answer(NodeFound(owner, node, "ready"))
            return

        def looked(left: bool | LogError) -> None:
            if isinstance(left, LogError):
                self._failed(owner, left)
            elif left or self._unread(node) != unread:
                context.answer(NodeFound(owner, node, "ready"))
            else:
                self.delete(node, owner)

        context.worker.submit(lambda: self._has_any(node, unread), looked)

    def _unread(self, node: Node) -> int | None:
        """The lowest EID that some durable of it has not looked at; -1: there are no durables. None: one of them has
        something that is not settled."""
        unread = []
        for known in [*self._metadata.durables.values()]:
            if known.node != node.name:
                continue
            state = self._shard.state(node.store, known.name)
            if state is not None and (state.unsettled or state.returned):
                return None
            unread.append(state.position if state is not None else known.of(node).start)
        return min(unread, default=-1)

    def _has_any(self, node: Node, start: int) -> bool:
        """Whether there are events from that EID on: where the log ends says nothing, there are gaps. Blocks; raises
        LogError."""
        log, deadline_s = self._context.log, self._context.limits.control_deadline_s
        first, end = log.control.bounds(node.topic, node.partition, deadline_s)
        start = max(start, first) if start >= 0 else end
        return start < end and bool(log.control.read_range(node.topic, node.partition, start, 1, deadline_s).offsets)
