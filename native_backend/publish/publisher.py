"""Publishing: batches to the log, its completions as native answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from mappings.language.causes import ANSWERS
from native_backend.dispatch.context import RealmContext, append
from native_backend.log.columns import Strings
from native_backend.log.port import Appended, Cause
from native_backend.nodes.answers import Published
from native_backend.nodes.node import Node
from native_backend.nodes.words import PublishAnswer
from native_backend.publish.capacities import Capacities
from native_backend.publish.capacity import AdmittedBatch
from native_backend.publish.evidence import Evidence, Record
from native_backend.publish.history_topic import HistoryRecord, HistoryTopic
from native_backend.shard.shard import Shard
from native_backend.shard.truncation import Truncations
from native_backend.state.durations import Durations

_ANSWERS = cast("Mapping[Cause, PublishAnswer]", ANSWERS["publish"])


class Publisher:
    """What was appended and is not stored yet."""

    def __init__(self, context: RealmContext, shard: Shard, truncations: Truncations) -> None:
        self.appended = 0  # events
        self.seconds = Durations()  # of runs that were stored, from their hand-over to the log
        self.evidence = Evidence(context)
        self.history = HistoryTopic(context)
        self._context = context
        self._metadata = context.metadata
        self._truncations = truncations
        self.capacities = Capacities(context, shard.state, shard.evict)

    @property
    def pending(self) -> bool:
        """Is anything under way?"""
        return bool(self.appended or self.capacities.pending or self.history.pending)

    def publish(self, node: Node, keys: Strings, values: Strings, owner: object) -> None:
        if not self._metadata.alive(node):
            self._context.answer(Published(owner, 0, [-1] * len(keys), "not-found", "deleted"))
            return
        counted_store = self.capacities.of(node)
        if counted_store is not None:
            counted_store.publish(keys, values, owner)
            return
        self.appended += len(keys)
        append(self._context, node, keys, values, owner)

    def forget(self, node: Node) -> None:
        """The node was deleted."""
        for part in node.parts:
            self.capacities.forget(part.store)

    def _note(self, appended: Appended) -> None:
        """These are events."""
        batch, context = appended.batch, self._context
        events = context.events.get((batch.topic, batch.partition))
        if events is not None and appended.offsets:
            first, count = appended.first, len(appended.offsets)
            keys = batch.keys if count == len(batch.keys) else batch.keys[first : first + count]
            events.stored(appended.offsets, keys, context.clock.epoch_us() // 1000)

    def completed(self, appended: Appended) -> None:
        """The log has answered about something of a batch."""
        batch, offsets = appended.batch, appended.offsets
        if type(batch.owner) is Record:
            self.evidence.completed(batch.owner, appended)
            return
        if type(batch.owner) is HistoryRecord:
            self.history.completed(batch.owner, appended)
            return
        if appended.failure is None and offsets:
            self.seconds.add(self._context.clock.monotonic_s() - batch.began_s)
            self._context.known.stored((batch.topic, batch.partition), offsets[0], offsets[-1], batch.known)
        if not self._truncations.withholds(appended, self._tell):
            self._tell(appended)

    def _tell(self, appended: Appended) -> None:
        failure, count = appended.failure, len(appended.offsets)
        owner = appended.batch.owner
        if type(owner) is AdmittedBatch:
            owner.counted_store.completed(owner, appended)
            owner = owner.owner
        else:
            self.appended -= count
        answer: PublishAnswer = "stored"
        native = ""
        if failure is None:
            self._note(appended)
        else:
            answer = _ANSWERS[failure.cause]
            native = failure.code or failure.cause
        self._context.answer(Published(owner, appended.first, appended.offsets, answer, native))
