"""`realmgate reconcile --acknowledge ID --until DAY --by NAME --reason TEXT`: a finding of the last reconciliation is
known and accepted until a day. No realm is read.

Exit code: 0 written, 1 there is no such finding, 2 could not run.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TextIO, TypeVar

from reconciliation.cli.places import opened
from reconciliation.history import kept
from reconciliation.history.acknowledged import FILE, Acknowledged, day_of, line_of, parse
from reconciliation.history.acknowledging import with_entry
from reconciliation.history.record import Record
from reconciliation.history.standing import day_at
from reconciliation.model.folder import Folder, LocalFolder
from reconciliation.model.settings import SettingsError

WRITTEN, NO_SUCH_FINDING = 0, 1
_SHOWN = 10
_Said = TypeVar("_Said")


def acknowledge(arguments: argparse.Namespace, out: TextIO, now_us: int) -> int:
    """`now_us`: the time, in microseconds since 1970."""
    until = _read(arguments, "until", day_of)
    by, reason = _read(arguments, "by", line_of), _read(arguments, "reason", line_of)
    today = day_at(now_us)
    if until < today:
        raise SettingsError(f"--until {until} is over: today is {today}, UTC")
    with opened(arguments) as place:
        record = _last(kept.read(place.history))
        cause = next((finding for finding in record.findings if finding.id == arguments.acknowledge), None)
        if cause is None:
            sys.stderr.write(f"reconcile: {_no_such(arguments.acknowledge, record)}\n")
            return NO_SUCH_FINDING
        folder, name = place_of(arguments.acknowledged, place.out)
        file = f"{folder / name}"
        content = with_entry(folder.read(name), file, cause, until, by, reason)
        folder.make()
        folder.write(name, content)
    out.write(f"{file}: {cause.id}, {cause.count:,} messages, is acknowledged to the end of {until} (UTC).\n")
    return WRITTEN


def _read(arguments: argparse.Namespace, name: str, read: Callable[[str], _Said]) -> _Said:
    try:
        return read(getattr(arguments, f"acknowledged_{name}"))
    except ValueError as error:
        raise SettingsError(f"--{name}: {error}") from error


def place_of(file: Path | None, out: Folder | None) -> tuple[Folder, str]:
    """Where acknowledgements are: the file that was named, else the one beside the report."""
    if file is not None:
        return LocalFolder(file.parent), file.name
    if out is None:
        raise SettingsError("name the file by --acknowledged FILE, or the directory of the report by --out")
    return out, FILE


def read_acknowledged(file: Path | None, out: Folder) -> Acknowledged:
    """Raises SettingsError: FILE:LINE for what is wrong in it. Nothing is acknowledged where the report has no file."""
    folder, name = place_of(file, out)
    content = folder.read(name) if file is not None or folder.exists() else None
    if content is None and file is not None:
        raise SettingsError(f"{file}: there is no such file; --acknowledge ID with --acknowledged {file} makes it")
    return parse(content or b"", f"{folder / name}")


def _last(history: kept.Kept) -> Record:
    if history.damaged and (not history.names or history.damaged[-1].name > history.names[-1]):
        raise SettingsError(history.words_of_damaged()[-1])
    if not history.records:
        raise SettingsError(f"there is no record in {history.directory}: name by --out the directory of a report")
    return history.records[-1]


def _no_such(name: str, record: Record) -> str:
    names = [finding.id for finding in record.findings]
    more = f" and {len(names) - _SHOWN + record.left_out} more" if len(names) > _SHOWN else ""
    there = f"it has {', '.join(names[:_SHOWN])}{more}" if names else "it has none"
    return f"the last reconciliation has no finding {name}: {there}"
