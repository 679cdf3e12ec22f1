"""Looks once a second at the topics that readers are open on, and tells the readers when theirs is gone.

Kafka's clients do not: a reader of a deleted topic waits for ever, and reads on, at the same offset, in a topic of
the same name that is made later. Topic ids tell.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from native_backend.log.port import Failure, LogError, Topic

_LOG = logging.getLogger(__name__)
INTERVAL_S = 1.0
FIRST_S = 0.05  # a reader that was just opened wants to know soon

Describe = Callable[[list[str]], dict[str, Topic | None]]
"""Topics by name; None: there is none. Of what is left out nothing is known now."""


@dataclass(eq=False, slots=True)
class WatchedTopic:
    """What is known of one reader's topic. Once `failure` is set it stays. `suspicion` is what the reader's failure is
    if the topic is still the same one."""

    topic: str
    partition: int
    id: bytes | None = None
    failure: Failure | None = None
    suspicion: Failure | None = None


class TopicWatcher:
    """One daemon thread, started by the first reader."""

    def __init__(self, describe: Describe) -> None:
        self._describe = describe
        self._watched: set[WatchedTopic] = set()
        self._lock = threading.Lock()
        self._changed = threading.Event()
        self._closing = False
        self._thread: threading.Thread | None = None

    def open(self, topic: str, partition: int) -> WatchedTopic:
        watched = WatchedTopic(topic, partition)
        with self._lock:
            self._watched.add(watched)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="kafka-watch", daemon=True)
                self._thread.start()
        self._changed.set()
        return watched

    def suspect(self, watched: WatchedTopic, failure: Failure) -> None:
        """The reader's offset is out of range: because records were trimmed, or because this is another topic?"""
        watched.suspicion = failure
        self._changed.set()

    def close(self, watched: WatchedTopic) -> None:
        with self._lock:
            self._watched.discard(watched)

    def stop(self, deadline_s: float) -> None:
        self._closing = True
        self._changed.set()
        if self._thread is not None:
            self._thread.join(deadline_s)

    def _run(self) -> None:
        while not self._closing:
            if self._changed.wait(INTERVAL_S):
                self._changed.clear()
                time.sleep(FIRST_S)  # several readers are often opened together
            with self._lock:
                sights = list(self._watched)
            if sights and not self._closing:
                self._look(sights)

    def _look(self, sights: list[WatchedTopic]) -> None:
        try:
            topics = self._describe(sorted({watched.topic for watched in sights}))
        except LogError:  # Kafka is not to be reached: nothing is known, the next look tells
            return
        except Exception:  # a mistake of ours: without this thread no reader would hear of a deletion any more
            _LOG.exception("topics could not be looked at")
            return
        for watched in sights:
            if watched.topic not in topics:
                continue
            topic = topics[watched.topic]
            if topic is None or watched.partition >= topic.partitions:
                watched.failure = Failure("not-found", f"no {watched.topic}/{watched.partition}")
            elif watched.id is not None and watched.id != topic.id:
                watched.failure = Failure("not-found", f"{watched.topic} was deleted and made again")
            else:
                watched.id = topic.id
                watched.failure = watched.suspicion
