"""Group offsets: a projection of acknowledgement states for Kafka's own tools, about once a second.

Nothing depends on it; it names the journal offset it was computed at. A failure is logged and made good by the next
round. Records: docs/records.md "Group offset". May import: the standard library, `native_backend` below it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from zlib import crc32

from native_backend.dispatch import Dispatch
from native_backend.log import Log, LogError
from native_backend.services import Services

_LOG = logging.getLogger(__name__)
Position = tuple[int, str]
Place = tuple[str, str, int]  # group, topic, partition
Change = tuple[Place, int, int, bool]
"""Place, low, the journal's end; and whether nothing is open and the last event below came in a transaction of ours:
then low stands before the mark that Kafka has left behind it, and Kafka's tools would take that for an event."""


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
        self._shown: dict[Place, int] = {}  # low
        self._work: list[Change] = []  # of the round under way
        self._running = False
        self._due_s = services.clock.monotonic_s()

    def forget(self, group: str) -> None:
        """The group is no more; one of that name may begin anew."""
        for place in [place for place in self._shown if place[0] == group]:
            del self._shown[place]

    def advance(self, dispatches: Iterable[Dispatch]) -> None:
        """Start a round if one is due and something changed; or go on with the one under way, some groups at a time:
        a commit takes milliseconds, and others wait for the control thread, too."""
        if self._running:
            return
        limits = self._services.limits
        if not self._work and (now_s := self._services.clock.monotonic_s()) >= self._due_s:
            self._due_s = now_s + limits.projection_interval_s
            self._work = self.changes(dispatches)[: limits.projection_groups]
        if self._work:
            self._running = True
            part, self._work = self._work[: limits.projection_batch], self._work[limits.projection_batch :]
            self._services.control.submit(lambda: self.commit(part), self._committed)

    def close(self, dispatches: Iterable[Dispatch], until_s: float) -> None:
        """The last round. Blocks."""
        work = self.changes(dispatches)
        while work and self._services.clock.monotonic_s() < until_s:
            self.commit(work[: self._services.limits.projection_batch])
            del work[: self._services.limits.projection_batch]

    def changes(self, dispatches: Iterable[Dispatch]) -> list[Change]:
        """Place and position of every durable whose mark has moved, those that waited longest first."""
        journal = self._services.journal
        moved = [
            (place, dispatch.state.low, journal.next, self._is_behind_ours(dispatch))
            for dispatch in dispatches
            if self._shown.get(place := (dispatch.durable.group, dispatch.node.topic, dispatch.node.partition))
            != dispatch.state.low
        ]
        age = {place: at for at, place in enumerate(self._shown)}
        return sorted(moved, key=lambda change: age.get(change[0], -1))

    def _is_behind_ours(self, dispatch: Dispatch) -> bool:
        state, place = dispatch.state, (dispatch.node.topic, dispatch.node.partition)
        return state.low == state.position == self._services.journal.written.get(place)

    def commit(self, work: list[Change]) -> list[tuple[Place, int]]:
        """Blocks. What was committed, and need not be again: place and low."""
        done = []
        for place, low, journal, is_behind_ours in work:
            group, topic, partition = place
            deadline_s = self._services.limits.control_deadline_s
            try:
                shown = _past_mark(self._services.log, (topic, partition), low, deadline_s) if is_behind_ours else low
                position = projection(shown or low, journal)
                self._services.log.project(group, {(topic, partition): position}, deadline_s)
            except LogError as error:
                _LOG.warning("cannot project group %r: %s", group, error)
            else:
                if shown is not None:
                    done.append((place, low))
        return done

    def _committed(self, done: list[tuple[Place, int]] | LogError) -> None:
        self._running = False
        if isinstance(done, LogError):
            return
        for place, low in done:
            self._shown.pop(place, None)  # what was shown last stands last
            self._shown[place] = low


def _past_mark(log: Log, place: tuple[str, int], low: int, deadline_s: float) -> int | None:
    """Where the log ends, if there is one record from `low` on and that is no event; `low`, if there is anything else;
    None, if the end cannot be seen yet. Blocks; raises LogError."""
    end = log.bounds(*place, deadline_s)[1]
    if end <= low:
        return None if log.reads_lag else low
    if end == low + 1 and not log.read_range(*place, low, 1, deadline_s).offsets:
        return end
    return low
