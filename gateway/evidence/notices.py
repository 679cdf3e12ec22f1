"""What peers do that an operator should hear of, in the log: who and what at once, and no more lines than a disk bears.

Of each kind: a line for each key that is new; what repeats, and what comes too thick, is counted and said later in one
line. A key that was not heard of for `FORGET_S` is new again. A kind has `LINES` lines at once, and one more every
`LINE_S`: some 600 kB in a day, whatever peers do; that connections open and close has more. Monotonic seconds.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol

from gateway.evidence.log_events import about
from native_backend.clock import Clock
from native_backend.nodes.grants import Subject

log = logging.getLogger("realmgate.peers")

LINES: Final = 20
LINE_S: Final = 60.0


class Rate(NamedTuple):
    """Lines of a kind at once, and one more every `line_s` seconds."""

    lines: float
    line_s: float


REFUSALS: Final = Rate(LINES, LINE_S)
CONNECTIONS: Final = Rate(200, 1.0)
FORGET_S: Final = 600.0
SUMMARY_S: Final = 60.0
"""From the first occurrence that has no line of its own to the line that counts it."""
KEYS: Final = 1_000
"""Remembered of each kind; the one that was heard of least recently is forgotten."""
WORDS: Final = 400
"""Characters of a line, at most."""


@dataclass(slots=True)
class _Kind:
    """`more`: occurrences without a line, since `more_s`; `last`: the words of the last one."""

    level: int
    rate: Rate
    lines: float
    filled_s: float
    heard: OrderedDict[Hashable, float] = field(default_factory=OrderedDict)
    more: int = 0
    more_s: float = 0.0
    last: str = ""


class PeerIdentity(Protocol):
    """Who a peer is: `container` is its container-id, `address` where its socket comes from."""

    @property
    def container(self) -> str: ...

    @property
    def subject(self) -> Subject: ...

    @property
    def address(self) -> str: ...


def peer_of(peer: PeerIdentity) -> str:
    """Who it is, in words."""
    user, container = ascii(peer.subject.user)[:200], ascii(peer.container)[:200]
    return f"user {user}, container {container}, from {peer.address or 'here'}"


def key_of(peer: PeerIdentity) -> Hashable:
    """What distinguishes peers: programs of one user, or without a login, are several."""
    return peer.subject.user, peer.container, peer.address


class Notices:
    """One process's. `kind` is one of a few words of ours; keys and words may be a peer's."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kinds: dict[str, _Kind] = {}

    def tell(
        self,
        kind: str,
        key: Hashable,
        words: str,
        facts: Mapping[str, Any] | None = None,
        level: int = logging.WARNING,
        rate: Rate = REFUSALS,
    ) -> bool:
        """It has happened. True: it has a line of its own. `facts`: for programs that read the log."""
        if self.has_line(kind, key, words, level, rate):
            log.log(level, "%s: %s", kind, words[:WORDS], extra=about(kind, **facts or {}))
            return True
        return False

    def has_line(
        self, kind: str, key: Hashable, words: str, level: int = logging.WARNING, rate: Rate = REFUSALS
    ) -> bool:
        """The same, where the caller writes the line."""
        now_s = self._clock.monotonic_s()
        allowance = self._kinds.get(kind)
        if allowance is None:
            allowance = self._kinds[kind] = _Kind(level, rate, rate.lines, now_s)
        allowance.lines = min(rate.lines, allowance.lines + (now_s - allowance.filled_s) / rate.line_s)
        allowance.filled_s = now_s
        before_s = allowance.heard.pop(key, None)
        is_new = before_s is None or now_s - before_s > FORGET_S
        if is_new and allowance.lines >= 1:
            allowance.lines -= 1
            allowance.heard[key] = now_s
            while len(allowance.heard) > KEYS:
                allowance.heard.popitem(last=False)
            return True
        if not is_new:
            allowance.heard[key] = now_s
        if not allowance.more:
            allowance.more_s = now_s
        allowance.more += 1
        allowance.last = words
        return False

    def advance(self) -> None:
        """Once in a while: say what has no line of its own."""
        now_s = self._clock.monotonic_s()
        for name, kind in self._kinds.items():
            if kind.more and now_s - kind.more_s >= SUMMARY_S:
                self._sum_up(name, kind)

    def close(self) -> None:
        """The same, at once."""
        for name, kind in self._kinds.items():
            if kind.more:
                self._sum_up(name, kind)

    def _sum_up(self, name: str, kind: _Kind) -> None:
        words = "%s: %d more of this kind; the last: %s"
        log.log(kind.level, words, name, kind.more, kind.last[:WORDS], extra=about(name, more=kind.more))
        kind.more = 0
