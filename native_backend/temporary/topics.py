"""The topics of temporary nodes: made ahead and deleted later, many in one call.

A call that makes one topic takes Kafka a tenth of a second, one for sixteen little longer, and whatever else is asked
of the log waits meanwhile. So there is one such call at a time, for everything that has come up since the last one; the
more often a node has to wait for a topic, the more are made ahead. What is not deleted at the end, the next start
deletes (`TemporaryNodes.sweep`). Source: ADR 0059.
"""

from __future__ import annotations

import logging
import secrets
from collections import deque
from collections.abc import Callable

from native_backend.dispatch.context import RealmContext
from native_backend.log.port import LogError, Topic, TopicSpec

_LOG = logging.getLogger(__name__)
CALL_MAX = 64  # topics of one call, which has a deadline
Done = Callable[[Topic | LogError], None]


class TemporaryTopics:
    """See the module's docstring."""

    def __init__(self, context: RealmContext, prefix: str) -> None:
        """`prefix`: of their names, and of no other topic's."""
        self._context = context
        self._prefix = prefix
        self._ahead: deque[Topic] = deque()
        self._waiting: deque[Done] = deque()  # never with topics ahead
        self._stock = 0  # how many are made ahead
        self._making = False
        self._unwanted: deque[str] = deque()
        self._dropping = False
        self._drop_s = 0.0  # when the first of them has waited long enough
        self._timer = context.timers.timer("temporary nodes", self._drop_some)
        self._closing = False

    # -- making

    def take(self, done: Done) -> None:
        """A topic that is not in use; `done` is called at once where there is one ahead."""
        if self._ahead:
            done(self._ahead.popleft())
        else:
            self._waiting.append(done)
        self._make()

    def _make(self) -> None:
        if self._making or self._closing or (len(self._ahead) > self._stock // 2 and not self._waiting):
            return
        limits, waiting = self._context.limits, len(self._waiting)
        if waiting:
            self._stock = min(max(2 * self._stock, limits.temporary_topics), limits.temporary_topics_max)
        count = min(waiting + self._stock - len(self._ahead), CALL_MAX)
        specs = [TopicSpec(self._prefix + secrets.token_hex(16)) for _ in range(count)]
        log, deadline_s = self._context.log, limits.control_deadline_s

        def made(topics: list[Topic] | LogError) -> None:
            self._making = False
            if isinstance(topics, LogError):
                self._failed(topics, min(waiting, count))
            else:
                self._hand_out(topics)

        self._making = True
        self._context.worker.submit(lambda: log.control.create_topics(specs, deadline_s), made)

    def _hand_out(self, topics: list[Topic]) -> None:
        self._ahead += topics
        while self._ahead and self._waiting:
            self._waiting.popleft()(self._ahead.popleft())
        if self._closing:
            self._discard()
        else:
            self._make()

    def _failed(self, error: LogError, count: int) -> None:
        """Answer the callers that waited when the topics were requested; another call serves later ones."""
        _LOG.info("cannot make the topics of temporary nodes: %s", error)
        for done in [self._waiting.popleft() for _ in range(count)]:
            done(error)
        if self._waiting:
            self._make()

    # -- ending

    def drop(self, topic: str) -> None:
        """No process finds it any more: it is deleted within `temporary_drop_s`."""
        if not self._unwanted:
            self._drop_s = self._context.clock.monotonic_s() + self._context.limits.temporary_drop_s
        self._unwanted.append(topic)
        if self._closing:
            self._drop_some()
        else:
            self._plan()

    def _plan(self) -> None:
        self._timer.by(0.0 if len(self._unwanted) >= CALL_MAX else self._drop_s)

    def _drop_some(self) -> None:
        """Delete what has waited long enough, or is enough for a call."""
        if not self._unwanted or self._dropping:
            return
        waited = self._closing or self._context.clock.monotonic_s() >= self._drop_s
        if waited or len(self._unwanted) >= CALL_MAX:
            self._drop([self._unwanted.popleft() for _ in range(min(len(self._unwanted), CALL_MAX))])

    def _drop(self, names: list[str]) -> None:
        log, deadline_s = self._context.log, self._context.limits.control_deadline_s

        def dropped(error: LogError | None) -> None:
            self._dropping = False
            if error is not None:
                _LOG.warning("cannot delete topics %s, the next start does: %s", names, error)
            elif self._closing:
                self._drop_some()
            if self._unwanted:
                self._plan()

        self._dropping = True
        self._context.worker.submit(lambda: log.control.delete_topics(names, deadline_s), dropped)

    def close(self) -> None:
        """No more turns come, and no more nodes: all topics go."""
        self._closing = True
        self._discard()

    def _discard(self) -> None:
        self._unwanted += (topic.name for topic in self._ahead)
        self._ahead.clear()
        self._drop_some()
