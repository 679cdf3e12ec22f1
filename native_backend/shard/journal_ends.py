"""A journal that ends before what snapshots and durables name of it, or begins behind what recovery needs of it.

What is journaled from then on has offsets that recovery would take for known. So all that names an offset of the
journal is written anew, before anything is settled: the records of durables, then a snapshot of each state. Where the
beginning is lost, a snapshot of each state. What was acknowledged in the part that is lost, and stands in no snapshot,
is given again.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace

from native_backend.dispatch.context import RealmContext
from native_backend.journal.recovery import Recovery
from native_backend.journal.snapshot import Key
from native_backend.log.port import LogError
from native_backend.nodes.durable import Durable
from native_backend.shard.durable_records import write_durable
from native_backend.shard.snapshot_writer import SnapshotWriter

_LOG = logging.getLogger(__name__)
TRUNCATED = "journal records lost by truncation"
TRIMMED = "journal records lost by retention"


class JournalEnds:
    """Of one realm."""

    def __init__(self, context: RealmContext, snapshots: SnapshotWriter) -> None:
        self._context, self._metadata, self._snapshots = context, context.metadata, snapshots

    def check(self, recovery: Recovery, end: int, every: Iterable[Key]) -> None:
        """After a claim; `end`: of the journal. Blocks; raises LogError."""
        if recovery.missing:
            self._context.alarms[TRIMMED] += recovery.missing
        snapshots = (state.snapshot for state in recovery.states.values())
        named = max([*snapshots, *(durable.journal for durable in self._metadata.durables.values())], default=0)
        if named > end:
            self._tell(named - end)
            for durable in self._renew(end):
                self._metadata.remember(durable)
        if named > end or recovery.missing:  # else the next start would miss the same again
            self._snapshots.rewrite(every)

    def noticed(self, missing: int, every: Iterable[Key]) -> None:
        """A transaction of this process was stored so far below the end that the journal had."""
        self._tell(missing)
        end = self._context.journal.next

        def renewed(durables: list[Durable] | LogError) -> None:
            if isinstance(durables, LogError):
                _LOG.warning("durables name offsets that the journal does not have: %s", durables)
            else:
                for durable in durables:
                    self._metadata.remember(durable)

        self._context.worker.submit(lambda: self._renew(end), renewed)
        self._snapshots.hurry(every)

    def _tell(self, missing: int) -> None:
        context = self._context
        context.alarms[TRUNCATED] += max(1, missing)
        _LOG.error(
            "the journal %s lost its last records, %d or more: what they acknowledged may be given again. Find out "
            "what made it shorter (an unclean election, a restored backup)",
            context.journal.topic,
            max(1, missing),
        )

    def _renew(self, end: int) -> list[Durable]:
        """What the journal says from here on is of these durables. Blocks; raises LogError."""
        renewed = [replace(entry, journal=end) for entry in [*self._metadata.durables.values()] if entry.journal > end]
        for durable in renewed:
            write_durable(self._context, durable)
        return renewed
