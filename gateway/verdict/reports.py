"""Reconciliations, as `realmgate reconcile --out DIR` leaves them: DIR itself is one, or its folders are.

Source: reconciliation/report/report.py (`manifest.json`, `since-last.json`, `verdict.json`). A manifest that cannot be
read, or is too large, is named as that; so is a directory that cannot be looked through, or has no report. While a
reconciliation is under way, or was broken off, there is no manifest: the verdict before stands. Times are microseconds
since 1970.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import orjson

from gateway.verdict.answers import number, text
from gateway.verdict.limits import MANIFEST_BYTES, REPORTS

MANIFEST: Final = "manifest.json"
PAGE: Final = "index.html"
SINCE: Final = "since-last.json"
LATEST: Final = "verdict.json"
ACKNOWLEDGED: Final = "clean but for acknowledged"
VERDICTS: Final = ("clean", ACKNOWLEDGED, "incomplete", "not clean")
CHANGES: Final = ("new", "grown", "reopened", "same", "gone")
"""What became of findings since the reconciliation before."""


@dataclass(frozen=True, slots=True)
class Report:
    """`name` is unique in a console. `problem`: why it cannot be read; then there is nothing else. `at_us`: when the
    manifest was written, which is the end of the run; 0: there is no file to ask. `acknowledged`: messages in findings
    that operators have accepted; `entries`: who says so, until when and why. `since`: findings by what became of them,
    one of `CHANGES`; empty: there was no reconciliation before."""

    name: str
    directory: Path
    at_us: int
    problem: str = ""
    verdict: str = "unknown"
    sentence: str = ""
    window: str = ""
    complete: bool = False
    classes: list[dict[str, Any]] = field(default_factory=list)
    difference: int | None = None
    runs: int = 0
    has_page: bool = False
    acknowledged: int = 0
    entries: list[dict[str, Any]] = field(default_factory=list)
    since: dict[str, int] = field(default_factory=dict)

    def expired(self, today: str) -> list[str]:
        """Findings whose acknowledgement the verdict rests on, and which is over now. `today`: YYYY-MM-DD, UTC."""
        return [entry["id"] for entry in self.entries if entry["acknowledged"] and entry["until"] < today]


class Reports:
    """Those in these directories. A manifest is read again when it has changed."""

    def __init__(self, directories: Sequence[Path]) -> None:
        self._directories = directories
        self._known: dict[Path, tuple[tuple[int, int], Report]] = {}

    def read(self) -> list[Report]:
        """The newest first, at most `REPORTS`; last, what cannot be looked at."""
        places = [path for directory in self._directories for path in _looked_through(directory)]
        self._known = {path: self._one(path) for path in places if isinstance(path, Path)}
        unread = {path.directory: path for path in places if isinstance(path, Report)}
        ended = sorted((report for _, report in self._known.values()), key=lambda report: -report.at_us)
        newest = [*ended[:REPORTS], *[*unread.values()][:REPORTS]]
        names = Counter(report.name for report in newest)
        return [entry if names[entry.name] == 1 else _numbered(entry, at) for at, entry in enumerate(newest, 1)]

    def _one(self, path: Path) -> tuple[tuple[int, int], Report]:
        try:
            about = path.stat()
        except OSError as error:
            return (0, 0), _unread(path.parent, f"{path} cannot be read: {error.strerror}")
        stamp = about.st_mtime_ns, about.st_size
        known = self._known.get(path)
        return known if known is not None and known[0] == stamp else (stamp, _read(path, path.parent.name, *stamp))


def _numbered(report: Report, number: int) -> Report:
    """Two directories may have one name."""
    return replace(report, name=f"{report.name}-{number}")


def _looked_through(directory: Path) -> Iterator[Path | Report]:
    """What says how a reconciliation ended, and what cannot be looked at. Something of each directory."""
    try:
        inner = sorted((path for path in directory.iterdir() if path.name not in _NO_REPORTS), reverse=True)
    except OSError as error:
        yield _unread(directory, f"{directory} cannot be read: {error.strerror}")
        return
    own = _ended(directory) or (directory / LATEST if (directory / LATEST).is_file() else None)
    places = [path for path in (own, *map(_ended, inner)) if path is not None]
    yield from places[:REPORTS]
    if not places:
        yield _unread(directory, f"{directory} has no report: a reconciliation writes one when it ends")


_NO_REPORTS: Final = {"lost+found"}  # the root's, in each file system


def _ended(directory: Path) -> Path | Report | None:
    try:
        return directory / MANIFEST if (directory / MANIFEST).is_file() else None
    except OSError as error:
        return _unread(directory, f"{directory} cannot be read: {error.strerror}")


def _unread(directory: Path, why: str) -> Report:
    return Report(directory.name, directory, 0, why)


def _read(path: Path, name: str, modified_ns: int, size: int) -> Report:
    at_us = modified_ns // 1000
    if size > MANIFEST_BYTES:
        return Report(name, path.parent, at_us, f"{path} is larger than {MANIFEST_BYTES:,} octets")
    try:
        return _report(orjson.loads(path.read_bytes()), path, name, at_us)
    except OSError as error:
        return Report(name, path.parent, at_us, f"{path} cannot be read: {error.strerror}")
    except (orjson.JSONDecodeError, AttributeError, TypeError, KeyError, ValueError):
        return Report(name, path.parent, at_us, f"{path} is no manifest of a reconciliation")


def _report(content: Mapping[str, Any], path: Path, name: str, at_us: int) -> Report:
    verdict = content["verdict"]
    if verdict not in VERDICTS:
        raise ValueError
    difference = number(content.get("balance", content).get("difference"))
    since = " A reconciliation is under way since then, or was broken off." if path.name == LATEST else ""
    return Report(
        name,
        path.parent,
        at_us,
        verdict=verdict,
        sentence=(text(content.get("sentence")) or "") + since,
        window=text(content.get("window", {}).get("name")) or "",
        complete=content.get("complete") is True,
        classes=[_class(row) for row in content.get("classes", ())][:50],
        difference=None if difference is None else int(difference),
        runs=len(content.get("runs", ())),
        has_page=(path.parent / PAGE).is_file(),
        acknowledged=int(number(content.get("acknowledged", {}).get("messages")) or 0),
        entries=[_entry(entry) for entry in content.get("acknowledged", {}).get("entries", ())][:_ENTRIES],
        since=_since(path.parent / SINCE),
    )


_ENTRIES = 100


def _entry(entry: Mapping[str, Any]) -> dict[str, Any]:
    texts = {name: text(entry.get(name)) or "" for name in ("id", "node", "until", "by", "reason")}
    counts = {name: int(number(entry.get(name)) or 0) for name in ("messages", "acknowledged")}
    return {**texts, **counts, "expired": entry.get("expired") is True, "found": entry.get("found") is True}


def _since(path: Path) -> dict[str, int]:
    """Nothing of a report of an earlier release, or that cannot be read: the verdict does not need it."""
    try:
        if path.stat().st_size > MANIFEST_BYTES:
            return {}
        document = orjson.loads(path.read_bytes())
        return {} if document["before"] is None else {name: int(document["counts"][name]) for name in CHANGES}
    except (OSError, orjson.JSONDecodeError, AttributeError, TypeError, KeyError, ValueError):
        return {}


def _class(row: Mapping[str, Any]) -> dict[str, Any]:
    nodes = [text(node) or "" for node in row.get("nodes", ())][:20]
    return {
        "class": text(row["class"]) or "",
        "severity": text(row.get("severity")) or "",
        "count": int(number(row["count"]) or 0),
        "nodes": nodes,
    }
