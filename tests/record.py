"""What one pytest does, line by line in a file while it does it: a process that dies leaves the name of its test.

As a plugin (`-p tests.record`) it writes JSON lines to the file named by the environment's `RECORD`: each test that
begins, each that ends with its seconds and those of processor time (`processor_s`), each phase that fails with its
whole text, each test that is left out with its reason. Where `ONLY` names a file of node ids, it runs those and no
others. `read` gives the lines back.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest


@dataclass(slots=True)
class Record:
    """Of one pytest. `failed`: node id -> the text of each phase that failed. `skipped`: node id -> reason."""

    begun: list[str] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)

    @property
    def running(self) -> str:
        """The test that had begun and not ended, when the process died."""
        return self.begun[-1] if len(self.begun) > len(self.ended) else ""


def read(path: Path) -> Record:
    record = Record()
    if not path.exists():
        return record
    for line in path.read_text().splitlines():
        try:
            entry = json.loads(line)
        except json.JSONDecodeError:  # the last one of a process that died
            continue
        if "begun" in entry:
            record.begun.append(entry["begun"])
        elif "ended" in entry:
            record.ended.append(entry["ended"])
        elif "skipped" in entry:
            record.skipped[entry["skipped"]] = entry["reason"]
        else:
            text = f"[{entry['phase']}, {entry['seconds']:.1f} s]\n{entry['text']}"
            record.failed[entry["failed"]] = "\n".join(filter(None, [record.failed.get(entry["failed"]), text]))
    return record


def first_line(text: str) -> str:
    """The error of a failure's text, in a line: what pytest marks with an E."""
    marked = [line[1:].strip() for line in text.splitlines() if line.startswith("E ")]
    lines = marked or [line.strip() for line in text.splitlines()[1:] if line.strip()] or [text]
    return lines[0][:200]


def processor_s() -> float:
    """Processor time of this process and of the children that it has waited for, in seconds. What runs on, such as the
    broker of a lane, is not in it."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


class Recorder:
    """The plugin."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a")
        self._seconds = self._processor = 0.0

    def _write(self, **entry: object) -> None:
        self._file.write(json.dumps(entry) + "\n")
        self._file.flush()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._seconds, self._processor = 0.0, processor_s()
        self._write(begun=nodeid)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        used = processor_s() - self._processor
        self._write(ended=nodeid, seconds=round(self._seconds, 3), processor=round(used, 3))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds += report.duration
        if report.failed:
            text = "\n".join([report.longreprtext, *_captured(report)])
            self._write(failed=report.nodeid, phase=report.when, seconds=report.duration, text=text)
        elif report.skipped:
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longreprtext
            self._write(skipped=report.nodeid, reason=str(reason))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.skipped:
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longreprtext
            self._write(skipped=report.nodeid, reason=str(reason))


def _captured(report: pytest.TestReport) -> Iterator[str]:
    for title, content in report.sections:
        yield f"---- {title} ----\n{content}"


def pytest_configure(config: pytest.Config) -> None:
    if path := os.environ.get("RECORD"):
        config.pluginmanager.register(Recorder(Path(path)), "recorder")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if path := os.environ.get("ONLY"):
        wanted = set(json.loads(Path(path).read_text()))
        others = [item for item in items if item.nodeid not in wanted]
        items[:] = [item for item in items if item.nodeid in wanted]
        config.hook.pytest_deselected(items=others)
