"""`reconcile --acknowledge`: what an operator accepts is written, with all that has to be said; else nothing is."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from native_backend.log.open import open_embedded
from reconciliation.cli import main as commands
from reconciliation.history.acknowledged import parse
from reconciliation.history.kept import keep
from reconciliation.model.folder import LocalFolder
from tests.reconciliation.history.runs import causes, lost, record

SAID = ("--until", "2099-12-31", "--by", "ann", "--reason", "lost with the disk, INC-4711")
P1 = causes(lost(1))[0].id


@pytest.fixture
def out(tmp_path: Path) -> Path:
    keep(LocalFolder(tmp_path / "history"), record(lost(1)))
    keep(LocalFolder(tmp_path / "history"), record(lost(1, 2, 5), day=1))
    return tmp_path


def acknowledge(*words: str) -> tuple[int, str]:
    text = io.StringIO()
    return commands.main(["--acknowledge", *words], text), text.getvalue()


def test_it_is_written_as_the_last_reconciliation_has_it(out: Path) -> None:
    code, output = acknowledge(P1, *SAID, "--out", str(out))
    file = out / "acknowledged.yaml"
    assert (code, output) == (0, f"{file}: {P1}, 3 messages, is acknowledged to the end of 2099-12-31 (UTC).\n")
    [entry] = parse(file.read_bytes(), str(file)).entries
    assert (entry.members.parts(), entry.by, entry.reason) == (["1-2", "5"], "ann", SAID[-1])


def test_another_file_may_be_named(out: Path) -> None:
    file = out / "git" / "known.yaml"
    words = ("--history-in", str(out / "history"), "--acknowledged", str(file))
    assert acknowledge(P1, *SAID, *words)[0] == 0 and P1 in file.read_text()


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({1: "2020-01-01"}, "--until 2020-01-01 is over: today is "),
        ({1: "soon"}, "--until: soon is no day; write YYYY-MM-DD"),
        ({3: " "}, "--by: it is empty"),
        ({5: "a\nb"}, "--reason: it is no line of text of at most 500 characters"),
    ],
)
def test_what_makes_no_sense(out: Path, change: dict[int, str], error: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = [change.get(at, word) for at, word in enumerate(SAID)]
    assert acknowledge(P1, *words, "--out", str(out))[0] == 2
    assert error in capsys.readouterr().err and not (out / "acknowledged.yaml").exists()


def test_a_finding_that_there_is_not(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert acknowledge("P1-0000000000", *SAID, "--out", str(out))[0] == 1
    assert f"has no finding P1-0000000000: it has {P1}" in capsys.readouterr().err


def test_who_until_when_and_why_is_wanted(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        acknowledge(P1, *SAID[:2], "--out", str(out))
    assert left.value.code == 2
    assert "--acknowledge wants --by, --reason too: until when, who says so, and why" in capsys.readouterr().err


def test_nothing_is_acknowledged_by_a_damaged_record(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    newest = sorted((out / "history").iterdir())[-1]
    newest.write_bytes(newest.read_bytes()[:100])
    assert acknowledge(P1, *SAID, "--out", str(out))[0] == 2
    assert f"{newest} is damaged" in capsys.readouterr().err


@pytest.mark.parametrize("named", [False, True])
def test_a_damaged_file_keeps_a_reconciliation_from_running(
    tmp_path: Path, named: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before Spark is started, with the line and what to do."""
    open_embedded(tmp_path / "realm").close()
    (tmp_path / "realmgate.yaml").write_text("realm: {kind: embedded, path: realm}\n")
    file = tmp_path / ("known.yaml" if named else "acknowledged.yaml")
    words = ["--config", str(tmp_path / "realmgate.yaml"), "--out", str(tmp_path)]
    words += ["--acknowledged", str(file)] if named else []
    if named:
        assert commands.main(words) == 2
        assert f"{file}: there is no such file; --acknowledge ID" in capsys.readouterr().err
    file.write_text(f"acknowledged:\n  {P1}:\n    until: never\n")
    assert commands.main(words) == 2
    errors = capsys.readouterr().err
    assert f"{file}:2: {P1} has no by, reason, messages, of; realmgate reconcile --acknowledge ID" in errors
