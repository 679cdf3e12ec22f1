"""What keeps a reconciliation from running is told in words, with exit code 2, before Spark is started."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from native_backend.log.open import open_embedded
from reconciliation.cli import main as commands
from reconciliation.cli.judging import ROWS_NEEDED
from reconciliation.model.errors import SetupError


def run(config: str, directory: Path, *more: str) -> int:
    file = directory / "realmgate.yaml"
    file.write_text(config)
    return commands.main(["--config", str(file), "--out", str(directory / "out"), *more], io.StringIO())


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ("listen: []\n", "realm is missing; write realm: {kind: embedded, path: var/realm}"),
        ("realm: {kind: tape}\n", "realm.kind is tape; write kind: embedded or kind: kafka"),
        ("realm: {kind: kafka}\n", "realm.bootstrap is missing"),
        ("realm: {kind: embedded, path: nowhere}\n", "no realm in"),
    ],
)
def test_a_wrong_configuration(tmp_path: Path, capsys: pytest.CaptureFixture[str], config: str, words: str) -> None:
    assert run(config, tmp_path) == 2
    assert words in capsys.readouterr().err


def test_an_upside_down_window(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    times = ("--from", "2026-01-02", "--to", "2026-01-01T00:00:00+00:00")
    assert run("realm: {kind: embedded, path: realm}\n", tmp_path, *times) == 2
    assert "--from must be before --to" in capsys.readouterr().err


def test_a_folder_without_ledgers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ledgers = ("--ledgers", str(tmp_path))
    assert run("realm: {kind: embedded, path: realm}\n", tmp_path, *ledgers) == 2
    assert f"--ledgers: no *.jsonl in {tmp_path}" in capsys.readouterr().err
    (tmp_path / "_shop.jsonl").write_text("")
    assert run("realm: {kind: embedded, path: realm}\n", tmp_path, *ledgers) == 2
    assert f"--ledgers: _shop.jsonl in {tmp_path} would not be read" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        run("", tmp_path, *ledgers, "--every", "60", "--state", str(tmp_path))
    assert "--ledgers does not go with --every" in capsys.readouterr().err


PART = ("--from", "2026-01-01", "--to", "2026-01-02")


@pytest.mark.parametrize(
    ("words", "noted", "few"),
    [
        ((), False, False),
        (("--state",), False, True),
        (("--state", "--no-sums"), False, False),
        (("--state", *PART), False, False),
        (("--state", "--sums", *PART), False, True),
        (("--state",), True, False),
        (("--state", "--sums"), True, False),
    ],
)
def test_with_a_state_spark_starts_for_sums_unless_they_could_not_tell_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], noted: bool, few: bool
) -> None:
    def start(*_: object, of_sums: bool, **__: object) -> None:
        started.append(of_sums)
        raise SetupError("no Spark here")

    started = list[bool]()
    monkeypatch.setattr("reconciliation.engine.spark.start", start)
    open_embedded(tmp_path / "realm").close()
    state = tmp_path / "state"
    state.mkdir()
    if noted:
        (state / ROWS_NEEDED).write_text("there is no source of this auditor here")
    more = [part for word in words for part in ((word, str(state)) if word == "--state" else (word,))]
    assert run("realm: {kind: embedded, path: realm}\n", tmp_path, *more) == 2
    assert started == [few]


def test_sums_without_a_state(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for word in ("--sums", "--no-sums"):
        with pytest.raises(SystemExit, match="2"):
            run("", tmp_path, word)
        assert "want --state DIR: the increments are kept there" in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_kafka_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run('realm: {kind: kafka, bootstrap: "127.0.0.1:1"}\n', tmp_path) == 2
    assert "127.0.0.1:1" in capsys.readouterr().err


def test_no_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    open_embedded(tmp_path / "realm").close()
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert run("realm: {kind: embedded, path: realm}\n", tmp_path) == 2
    assert "apt-get install -y openjdk-17-jre-headless" in capsys.readouterr().err
    assert os.environ["PATH"] == str(tmp_path)


LACKING = "import sys, runpy; sys.modules[{module!r}] = None; runpy.run_module('reconciliation', run_name='__main__')"


@pytest.mark.parametrize(
    ("module", "wanted"),
    [("pyspark", "pyspark=="), ("py4j", "pyspark=="), ("pyarrow", "pyarrow"), ("numpy", "numpy"), ("orjson", "orjson")],
)
def test_a_package_that_is_not_installed(module: str, wanted: str) -> None:
    """In one line, with what installs the version that is wanted; no traceback."""
    command = [sys.executable, "-c", LACKING.format(module=module), "--help"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 2, done.stderr
    [line] = done.stderr.splitlines()
    assert line.startswith(f"reconcile: the Python package {wanted.partition('==')[0]} is not installed: ")
    assert f"'{wanted}" in line.partition(" -m pip install ")[2]
    of_the_extra = module != "orjson"
    assert ("'numpy' 'pyarrow' 'pyspark==" in line) == of_the_extra, "all that the extra brings, at once"


def test_a_module_of_ours_that_is_missing_is_shown_in_full() -> None:
    command = [sys.executable, "-c", LACKING.format(module="reconciliation.cli.main"), "--help"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr.splitlines()[0]) == (2, "Traceback (most recent call last):")
