"""Group offsets: a projection of acknowledgement states for Kafka's own tools, about once a second.

Every queue and durable has a group, whose lag is the number of its messages (`group_offset.py`). Nothing depends on it.
A failure is logged and made good by the next round. Records: docs/records.md "Group offset".
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from native_backend.dispatch.context import RealmContext
from native_backend.log.port import LogError
from native_backend.nodes.group_offset import projection
from native_backend.shard.depths import Depths

_LOG = logging.getLogger(__name__)
_STEP = 500  # durables looked at without a pause: some 700 us
_TALLY = 100  # what a count costs, as looks
_PAUSE_S = 0.001  # between two steps: turns of a busy gateway follow each other within a fifth of this
GroupPartition = tuple[str, str, int]  # group, topic, partition
_NONE: dict[GroupPartition, tuple[int, int]] = {}


@dataclass(frozen=True, slots=True)
class Change:
    """What a group is to show: the end less its messages; and its mark."""

    place: GroupPartition
    offset: int
    low: int
    journal: int


class GroupOffsetWriter:
    """Remembers what was projected last, so that an idle durable costs nothing."""

    def __init__(self, context: RealmContext, depths: Depths) -> None:
        self._context, self._depths = context, depths
        self._shown: dict[str, dict[GroupPartition, tuple[int, int]]] = {}  # by group: offset, low
        self._seen: dict[
            str, dict[GroupPartition, tuple[int, int]]
        ] = {}  # by group: `Depths.version` when it was counted last
        self._topics: dict[str, str] = {}  # by group
        self._groups: dict[str, set[str]] = {}  # by topic: metadata has lost them when a node is gone
        self._begin = 0  # where in the list of durables the next round begins
        self._failed: set[str] = set()  # groups, the last time they were tried
        self._steps: Iterator[None] | None = None  # the count of a round
        self._work: deque[Change] = deque()  # of the round under way
        self._running = False
        self._forgotten: set[str] = set()  # groups, while something is being committed
        self._timer = context.timers.timer("group offsets", self._go_on)
        self._timer.soon()
        self._due_s = context.clock.monotonic_s()  # when the next round begins

    def forget(self, group: str) -> None:
        """The group is being deleted, or was; one of that name may begin anew."""
        self._work = deque(change for change in self._work if change.place[0] != group)
        self._shown.pop(group, None)
        self._seen.pop(group, None)
        self._failed.discard(group)
        topic = self._topics.pop(group, None)
        if topic is not None:
            self._groups[topic].discard(group)
            if not self._groups[topic]:
                del self._groups[topic]
        if self._running:
            self._forgotten.add(group)

    def forget_topic(self, topic: str) -> None:
        """Its node is gone, and all its groups."""
        for group in [*self._groups.get(topic, ())]:
            self.forget(group)

    def _go_on(self) -> None:
        """Start a round if one is due and something changed; or go on with the one under way, some groups at a
        time."""
        if self._running or self._context.journal.fenced:
            return
        limits = self._context.limits
        if self._steps is None and not self._work and (now_s := self._context.clock.monotonic_s()) >= self._due_s:
            self._due_s = now_s + limits.projection_interval_s
            self._steps = self._count(limits.projection_groups)
        if self._steps is not None and next(self._steps, self) is None:
            self._timer.after(_PAUSE_S)  # not counted yet
            return
        self._steps = None
        if not self._work:
            self._timer.at(self._due_s)
        else:
            self._running = True
            part = [self._work.popleft() for _ in range(min(len(self._work), limits.projection_batch))]
            self._context.projections.submit(lambda: self.commit(part), lambda done: self._committed(part, done))

    def close(self, until_s: float) -> None:
        """The last round. Blocks."""
        for _ in self._count(len(self._depths.durables())):
            pass
        while self._work and self._context.clock.monotonic_s() < until_s:
            self.commit([self._work.popleft()])

    def _count(self, groups_max: int) -> Iterator[None]:
        """Look at every durable once, from where the last round ended, until the lag or mark of so many may have
        changed. In steps."""
        depths, known = self._depths, self._depths.durables()
        begin, cost = self._begin if self._begin < len(known) else 0, 0
        for at, (node, durable) in enumerate(chain(known[begin:], known[:begin])):
            if (cost := cost + 1) >= _STEP:
                yield None
                cost = 0
            place, version = (durable.group, node.topic, node.partition), depths.version(node, durable)
            if version is None or self._seen.get(place[0], _NONE).get(place) == version:
                continue
            if node.temporary and not version[0]:
                continue  # most of their durables end before they were looked at
            if not groups_max:
                self._begin = (begin + at) % len(known)
                return
            groups_max, cost = groups_max - 1, cost + _TALLY
            for step in depths.steps(node, durable):
                if step is None:
                    yield None
                elif depths.is_kept(node, durable):
                    self._seen.setdefault(place[0], {})[place] = version
                    self._topics[place[0]] = place[1]
                    self._groups.setdefault(place[1], set()).add(place[0])
                    self._note(place, step.place, depths.state(durable).low)

    def _note(self, place: GroupPartition, offset: int, low: int) -> None:
        if self._shown.get(place[0], _NONE).get(place) != (offset, low):
            self._work.append(Change(place, offset, low, self._context.journal.next))

    def commit(self, work: list[Change]) -> list[Change]:
        """Blocks. What was committed, and need not be again. What follows one without an answer is left to the next
        round."""
        done = []
        for change in work:
            group, topic, partition = change.place
            position = projection(change.offset, change.low, change.journal)
            try:
                self._context.log.control.project(
                    group, {(topic, partition): position}, self._context.limits.control_deadline_s
                )
            except LogError as error:
                if group not in self._failed:  # said once, tried every round
                    _LOG.warning("cannot project group %r: %s", group, error)
                self._failed.add(group)
                if error.failure.cause == "unavailable":
                    break
            else:
                self._failed.discard(group)
                done.append(change)
        return done

    def _committed(self, work: list[Change], done: list[Change] | LogError) -> None:
        self._running = False
        self._timer.at(0.0 if self._work else self._due_s)
        forgotten, self._forgotten = self._forgotten, set()
        self._delete(forgotten & {change.place[0] for change in work})
        for change in work:
            if change.place[0] in forgotten:
                continue
            if isinstance(done, LogError) or change not in done:
                for known in (self._seen, self._shown):  # count and try it again
                    known.get(change.place[0], {}).pop(change.place, None)
            else:
                self._shown.setdefault(change.place[0], {})[change.place] = change.offset, change.low

    def _delete(self, groups: set[str]) -> None:
        """They were deleted while they were committed, which may have made them again. A durable that has such a name
        by now is committed after this."""
        log, deadline_s = self._context.log, self._context.limits.control_deadline_s

        def delete() -> None:
            for group in groups:
                log.control.forget(group, deadline_s)

        def deleted(error: LogError | None) -> None:
            if error is not None:
                _LOG.warning("cannot delete the groups %s: %s", sorted(groups), error)

        if groups:
            self._context.projections.submit(delete, deleted)
