"""`realmgate what-if`, as far as the gateway's side of it goes: the tables are read and checked, and handed on."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mappings import load_tables
from mappings.compiler.table_set import SHIPPED, digest_of
from tests.gateway.cli.command_line import Run, config, run
from tests.kit.patience import HANG_S

__all__ = ["config", "run"]  # fixtures

REALMGATE = Path(sys.executable).with_name("realmgate")


def copy_of_the_tables(directory: Path) -> Path:
    shutil.copytree(SHIPPED / "tables", directory / "ours" / "tables")
    return directory / "ours"


def test_the_tables_have_to_be_named(run: Run) -> None:
    code, out, err = run("what-if")
    assert (code, out) == (2, "")
    assert "--dir DIR, --profile NAME, or both" in err


def test_wrong_tables_are_reported_with_their_lines(run: Run, tmp_path: Path) -> None:
    ours = copy_of_the_tables(tmp_path)
    settle = ours / "tables" / "settle.yaml"
    settle.write_text(settle.read_text().replace("native: dead-letter,", "native: bury,", 1))
    code, out, err = run("what-if", "--dir", str(ours))
    assert (code, out) == (2, "")
    line = next(at for at, text in enumerate(settle.read_text().splitlines(), 1) if "native: bury," in text)
    assert f"{settle}:{line}" in err and "bury" in err
    code, _, err = run("what-if", "--dir", str(tmp_path / "nowhere"))
    assert code == 2 and "nowhere" in err


class Handed(Exception):
    """Instead of becoming another process: the arguments of that process."""

    def __init__(self, words: list[str]) -> None:
        super().__init__(words)
        self.words = words
        self.document: dict[str, Any] = json.loads(Path(self.after("--tables")).read_bytes())

    def after(self, option: str) -> str:
        return self.words[self.words.index(option) + 1]


@pytest.fixture
def handed(monkeypatch: pytest.MonkeyPatch) -> None:
    def become(_: str, words: list[str]) -> None:
        raise Handed(words)

    monkeypatch.setattr(os, "execv", become)


def asked(run: Run, *words: str) -> Handed:
    with pytest.raises(Handed) as error:
        run("what-if", *words)
    return error.value


def test_the_expanded_tables_are_handed_on(run: Run, handed: None, config: Path, tmp_path: Path) -> None:
    output = asked(run, "--profile", "um-9.12", "--from", "2026-01-01", "--assume", "framing=whole", "--json")
    assert output.words[1:5] == ["-P", "-m", "reconciliation", "what-if"]
    assert output.document == json.loads(json.dumps(load_tables(profile="um-9.12").expanded()))
    assert (output.after("--name"), output.after("--config")) == ("the shipped tables", str(config))
    assert (output.after("--from"), output.after("--assume"), output.words[-1]) == (
        "2026-01-01",
        "framing=whole",
        "--json",
    )
    ours = copy_of_the_tables(tmp_path)
    published = ours / "tables" / "published.yaml"
    published.write_text(
        published.read_text().replace('condition: "amqp:precondition-failed"', 'condition: "amqp:not-allowed"')
    )
    output = asked(run, "--dir", str(ours))
    assert output.document["profile"] == "extended", "as configured"
    assert output.document["digest"] == digest_of(output.document) != load_tables().digest
    assert output.after("--name") == f"the tables in {ours}"


def test_the_process_that_decides_reads_them(config: Path, tmp_path: Path) -> None:
    """It has read and compared them when it finds no realm there."""
    command = [str(REALMGATE), "what-if", "--profile", "um-9.12", "--config", str(config)]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_S, check=False, env=environment)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("what-if: ") and "no realm in" in done.stderr
    assert [file.name for file in tmp_path.iterdir()] == [config.name], "nothing is left behind"
