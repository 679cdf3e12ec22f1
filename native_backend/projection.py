"""Group offsets: a projection of acknowledgement states for Kafka's own tools, about once a second.

Nothing depends on it; it names the journal offset it was computed at. A failure is logged and made good by the next
round. Records: docs/records.md "Group offset". May import: the standard library, `native_backend` below it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from zlib import crc32

from native_backend.dispatch import Dispatch
from native_backend.log import LogError
from native_backend.services import Services

_LOG = logging.getLogger(__name__)
Position = tuple[int, str]


def projection(low: int, journal: int) -> Position:
    """Offset and metadata text."""
    return low, f"realmgate1;{journal};{crc32(f'{low};{journal}'.encode()):08x}"


def parse_projection(position: Position) -> int | None:
    """The journal offset named by a group offset of ours; None for a foreign commit."""
    low, text = position
    fields = text.rstrip("\0").split(";")
    if len(fields) != 3 or not fields[1].isdigit():
        return None
    return int(fields[1]) if projection(low, int(fields[1]))[1] == text.rstrip("\0") else None


class Projector:
    """Remembers what was projected last, so that an idle durable costs nothing."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._shown: dict[str, int] = {}  # group -> low
        self._running = False
        self._due_s = services.clock.monotonic_s()

    def forget(self, group: str) -> None:
        """The group is no more; one of that name may begin anew."""
        self._shown.pop(group, None)

    def advance(self, dispatches: Iterable[Dispatch]) -> None:
        """Start a round if one is due and something changed."""
        now_s = self._services.clock.monotonic_s()
        if self._running or now_s < self._due_s:
            return
        self._due_s = now_s + self._services.limits.projection_interval_s
        work = self.changes(dispatches)[: self._services.limits.projection_groups]
        if work:
            self._running = True
            self._services.control.submit(lambda: self.commit(work), self._committed)

    def close(self, dispatches: Iterable[Dispatch]) -> None:
        """The last round. Blocks."""
        self.commit(self.changes(dispatches)[: self._services.limits.projection_groups])

    def changes(self, dispatches: Iterable[Dispatch]) -> list[tuple[str, str, Position]]:
        """Group, topic and position of every durable whose mark has moved."""
        journal = self._services.journal.next
        return [
            (dispatch.durable.group, dispatch.node.topic, projection(dispatch.state.low, journal))
            for dispatch in dispatches
            if self._shown.get(dispatch.durable.group) != dispatch.state.low
        ]

    def commit(self, work: list[tuple[str, str, Position]]) -> list[tuple[str, int]]:
        """Blocks. What was committed: group and low."""
        done = []
        for group, topic, position in work:
            try:
                self._services.log.project(group, {(topic, 0): position}, self._services.limits.control_deadline_s)
            except LogError as error:
                _LOG.warning("cannot project group %r: %s", group, error)
            else:
                done.append((group, position[0]))
        return done

    def _committed(self, done: list[tuple[str, int]] | LogError) -> None:
        self._running = False
        if not isinstance(done, LogError):
            self._shown.update(done)
