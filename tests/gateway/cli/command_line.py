"""One command of `realmgate` in this process, on an embedded realm. Test files import the fixtures by name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.cli import main as cli


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "gateway.yaml"
    path.write_text("realm: {kind: embedded, path: realm}\n", encoding="utf-8")
    return path


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(config: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """One command in this process: its exit code, what it printed, what it complained of."""

    def once(*words: str, configured: bool = True) -> tuple[int, str, str]:
        try:
            place = (
                2 if words[:1] in (("node",), ("durable",), ("queue",), ("acl",), ("connection",)) else 1
            )  # before a -- that a name may need
            given = ("--config", str(config)) if configured else ()
            code = cli.run([*words[:place], *given, *words[place:]])
        except SystemExit as leave:
            code = int(leave.code or 0)
        output = capsys.readouterr()
        return code, output.out, output.err

    return once
