"""The folder of records: one file for each reconciliation, the newest `KEPT` of them.

A record is written beside its place, synced, and given its name in one step: a process that is killed leaves a whole
record or none. Nothing is written twice. Names are times, so that they sort. Errors: `OSError`, `SetupError`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from reconciliation.history.record import Record, record_of
from reconciliation.model.errors import SetupError
from reconciliation.model.folder import Folder
from reconciliation.model.window import compact

KEPT = 366
"""A year of one a day."""
LOOKED_AT = 60
"""So many of the newest a reconciliation reads: at a URI each is a request."""
_NAME = re.compile(r"\d{8}T\d{6}\.\d{6}Z\.json")
_HALF = re.compile(r"\.(\d{8}T\d{6}\.\d{6}Z\.json)\..+")
"""What one that was killed left."""
_DAY_US = 86_400_000_000


@dataclass(frozen=True, slots=True)
class Damaged:
    """A file that is no record any more; `why` in words."""

    name: str
    why: str


@dataclass(frozen=True, slots=True)
class Kept:
    """`records` and their `names`, the oldest first. `damaged`: those that cannot be read, in the same order."""

    directory: str
    names: Sequence[str] = ()
    records: Sequence[Record] = ()
    damaged: Sequence[Damaged] = ()

    def before(self, record: Record) -> Record | None:
        """The newest one that `record` can be compared with; None: there is none, or a newer one is damaged. Which of
        today's findings that one had is not known: all of them count as new."""
        for at in range(len(self.records) - 1, -1, -1):
            if self.records[at].is_of(record):
                return None if any(file.name > self.names[at] for file in self.damaged) else self.records[at]
        return None

    def before_each(self) -> list[Record | None]:
        """For each record the one that it can be compared with, as `before` says it."""
        baselines = list[Record | None]()
        for at, (name, record) in enumerate(zip(self.names, self.records, strict=True)):
            damaged = [file for file in self.damaged if file.name < name]
            baselines.append(
                replace(self, names=self.names[:at], records=self.records[:at], damaged=damaged).before(record)
            )
        return baselines

    def words_of_damaged(self) -> list[str]:
        return [
            f"{self.directory}/{file.name} is damaged: {file.why}. Restore it from a backup, or remove it."
            for file in self.damaged
        ]


def read(folder: Folder, newest: int = KEPT) -> Kept:
    """The newest of those that are there. A folder that is not there holds nothing."""
    if not folder.exists():
        return Kept(str(folder))
    names, records, damaged = [], [], []
    for name in [*filter(_NAME.fullmatch, folder.names())][-newest:]:
        try:
            content = folder.read(name)
            if content is None:
                continue  # removed meanwhile, by another one that has ended
            records.append(record_of(content))
            names.append(name)
        except (ValueError, OSError) as error:
            damaged.append(Damaged(name, error.strerror or str(error) if isinstance(error, OSError) else str(error)))
    return Kept(str(folder), names, records, damaged)


def keep(folder: Folder, record: Record) -> str:
    """Its name. What is older than the newest `KEPT` is removed."""
    folder.make()
    while not folder.create(name := f"{compact(record.at_us)}.json", record.as_json()):
        record = replace(record, at_us=record.at_us + 1)  # two at once
    names = folder.names()
    gone = [*filter(_NAME.fullmatch, names)][:-KEPT]
    yesterday = f"{compact(max(record.at_us - _DAY_US, 0))}.json"  # a younger half may be that of one that still runs
    gone += [file for file in names if (half := _HALF.fullmatch(file)) and half[1] < yesterday]
    for file in gone:
        with suppress(OSError, SetupError):
            folder.remove(file)
    return name
