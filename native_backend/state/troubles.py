"""What keeps a realm, or one of its nodes, from its work now, and what has happened that cannot be undone: for
monitoring.

A *trouble* begins and ends. An *alarm* is a count of this run that only grows (`alarms[NAME] += count`).
`gateway/admin/problems.py` shows them, with whether they keep peers out and what to do.
Microseconds of the epoch. For one thread.
"""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass
from typing import Literal

from native_backend.clock import Clock

_LOG = logging.getLogger(__name__)
Kind = Literal[
    "cannot-write",  # the log refuses the realm's own records
    "log-unreachable",  # it does not answer a question that changes nothing
    "lease-lapsed",  # no event is given out
    "metadata-unread",  # nodes, durables and grants are known as they were
    "evidence-waits",
    "evidence-refused",  # the log takes other records
    "topic-missing",  # about a node; so are the next two
    "topic-made-again",
    "topic-unavailable",
    "topic-deletes",  # about a node, or the realm's own topics: by its settings Kafka deletes what is stored
    "topic-risks",  # the same: by them, or without a broker, it may lose it
    "topic-settings-unread",
    "access-lists-unread",
    "turn-fails",  # about a step of every turn: an exception that is a mistake of ours ends it
]
TOPIC_KINDS: tuple[Kind, ...] = ("topic-missing", "topic-made-again", "topic-unavailable")


@dataclass(frozen=True, slots=True)
class Trouble:
    """`about`: the node, or empty for the whole realm. `detail`: the log's own words."""

    kind: Kind
    about: str
    detail: str
    since_us: int


class Troubles:
    """Of one realm in one process."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._present: dict[tuple[Kind, str], Trouble] = {}

    def begin(self, kind: Kind, detail: str, about: str = "") -> None:
        """A trouble is there, since the first call; that one logs it."""
        known = self._present.get((kind, about))
        since_us = known.since_us if known is not None else self._clock.epoch_us()
        self._present[kind, about] = Trouble(kind, about, detail, since_us)
        if known is None:
            _LOG.warning("%s%s: %s", kind, f" ({about!a:.200})" if about else "", detail)

    def end(self, kind: Kind, about: str = "") -> None:
        """The trouble is over, or was not there."""
        if self._present.pop((kind, about), None) is not None:
            _LOG.warning("%s%s: resolved", kind, f" ({about!a:.200})" if about else "")

    def present(self) -> list[Trouble]:
        """The longest first."""
        return sorted(self._present.values(), key=lambda trouble: trouble.since_us)


class Alarms(Counter[str]):
    """`raised_us`: when each grew last."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock
        self.raised_us: dict[str, int] = {}

    def __setitem__(self, name: str, count: int) -> None:
        if count > self[name]:
            self.raised_us[name] = self._clock.epoch_us()
        super().__setitem__(name, count)
