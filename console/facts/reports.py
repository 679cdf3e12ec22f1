"""Reconciliations, as `realmgate reconcile --out DIR` leaves them: DIR itself is one, or its folders are.

Source: reconciliation/report/report.py (`manifest.json`). A manifest that cannot be read, or is too large, is named as
that. Microseconds since 1970.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import orjson

from console.facts.answers import number, text
from console.limits import MANIFEST_BYTES, REPORTS

MANIFEST: Final = "manifest.json"
PAGE: Final = "index.html"
VERDICTS: Final = ("clean", "incomplete", "not clean")


@dataclass(frozen=True, slots=True)
class Report:
    """`name` is unique in a console. `problem`: why it cannot be read; then there is nothing else. `at_us`: when the
    manifest was written, which is the end of the run."""

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


def read_reports(directories: Sequence[Path]) -> list[Report]:
    """The newest first, at most `REPORTS`."""
    found = {str(path): path for directory in directories for path in _manifests(directory)}
    read = [_read(path, "/".join(path.parts[-2:-1])) for path in found.values()]
    return sorted(read, key=lambda report: -report.at_us)[:REPORTS]


def _manifests(directory: Path) -> Iterator[Path]:
    try:
        folders = [directory, *sorted((each for each in directory.iterdir() if each.is_dir()), reverse=True)[:200]]
        yield from (each / MANIFEST for each in folders if (each / MANIFEST).is_file())
    except OSError:
        return


def _read(path: Path, name: str) -> Report:
    try:
        about = path.stat()
        if about.st_size > MANIFEST_BYTES:
            return Report(
                name, path.parent, about.st_mtime_ns // 1000, f"{path} is larger than {MANIFEST_BYTES:,} octets"
            )
        content = orjson.loads(path.read_bytes())
        return _report(content, path, name, about.st_mtime_ns // 1000)
    except OSError as error:
        return Report(name, path.parent, 0, f"{path} cannot be read: {error.strerror}")
    except (orjson.JSONDecodeError, AttributeError, TypeError, KeyError, ValueError):
        return Report(name, path.parent, about.st_mtime_ns // 1000, f"{path} is no manifest of a reconciliation")


def _report(content: Mapping[str, Any], path: Path, name: str, at_us: int) -> Report:
    verdict = content["verdict"]
    if verdict not in VERDICTS:
        raise ValueError
    difference = number(content.get("balance", {}).get("difference"))
    return Report(
        name,
        path.parent,
        at_us,
        verdict=verdict,
        sentence=text(content.get("sentence")) or "",
        window=text(content.get("window", {}).get("name")) or "",
        complete=content.get("complete") is True,
        classes=[_class(one) for one in content.get("classes", ())][:50],
        difference=None if difference is None else int(difference),
        runs=len(content.get("runs", ())),
        has_page=(path.parent / PAGE).is_file(),
    )


def _class(one: Mapping[str, Any]) -> dict[str, Any]:
    nodes = [text(node) or "" for node in one.get("nodes", ())][:20]
    return {
        "class": text(one["class"]) or "",
        "severity": text(one.get("severity")) or "",
        "count": int(number(one["count"]) or 0),
        "nodes": nodes,
    }
