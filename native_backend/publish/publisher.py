"""Publishing: batches to the log, its completions as native answers.

May import: the standard library, `mappings.causes`, `native_backend` below it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from mappings.causes import ANSWERS
from native_backend.answers import PublishAnswer, Published
from native_backend.capacity import Capacities, Share
from native_backend.evidence import Evidence, Record
from native_backend.log import Append, Appended, Cause
from native_backend.metadata import Metadata
from native_backend.nodes import Node
from native_backend.services import Services
from native_backend.shard import Shard
from native_backend.strings import Strings

_ANSWERS = cast("Mapping[Cause, PublishAnswer]", ANSWERS["publish"])


class Publisher:
    """What was appended and is not stored yet."""

    def __init__(self, services: Services, metadata: Metadata, shard: Shard) -> None:
        self.appended = 0  # events
        self.evidence = Evidence(services)
        self._services = services
        self._metadata = metadata
        self.capacities = Capacities(services, shard.state, shard.evict)

    @property
    def pending(self) -> bool:
        """Is anything under way?"""
        return bool(self.appended or self.capacities.pending)

    def publish(self, node: Node, keys: Strings, values: Strings, owner: object) -> None:
        if not self._metadata.alive(node):
            self._services.answer(Published(owner, 0, [-1] * len(keys), "not-found", "deleted"))
            return
        bounded = self.capacities.of(node)
        if bounded is not None:
            bounded.publish(keys, values, owner)
            return
        self.appended += len(keys)
        self._services.log.append(Append(node.topic, node.partition, keys, values, owner))

    def forget(self, node: Node) -> None:
        """It is no more."""
        for part in node.parts:
            self.capacities.forget(part.store)

    def advance(self) -> None:
        self.capacities.advance()
        self.evidence.advance()

    def completed(self, appended: Appended) -> None:
        failure, count = appended.failure, len(appended.offsets)
        owner = appended.batch.owner
        if type(owner) is Record:
            self.evidence.completed(owner, appended)
            return
        if type(owner) is Share:
            owner.bounded.completed(owner, appended)
            owner = owner.owner
        else:
            self.appended -= count
        answer: PublishAnswer = "stored"
        native = ""
        if failure is not None:
            answer = _ANSWERS[failure.cause]
            native = failure.code or failure.cause
        self._services.answer(Published(owner, appended.first, appended.offsets, answer, native))
