"""`reconcile --history`: a line for each reconciliation, without a realm and without Spark; damage makes it red."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from reconciliation.cli import main as commands
from reconciliation.history.kept import keep
from reconciliation.model.folder import LocalFolder
from tests.reconciliation.history.runs import lost, record


def history(*words: str) -> tuple[int, str]:
    out = io.StringIO()
    return commands.main(["--history", *words], out), out.getvalue()


@pytest.fixture
def out(tmp_path: Path) -> Path:
    folder = LocalFolder(tmp_path / "history")
    bills = lost(4, node="bills", store=8)
    for day, rows in enumerate([[], lost(1, 2), [*lost(1, 2, 3), *bills], bills]):
        keep(folder, record(rows, day=day))
    return tmp_path


def test_a_line_a_run_with_its_trend(out: Path) -> None:
    code, output = history("--out", str(out))
    head, *lines = output.splitlines()
    assert code == 0 and head == f"{out}/history: 4 records; the newest 366 are kept."
    rows = [line.replace("not clean", "not-clean").split()[3:] for line in lines[1:]]
    assert rows == [
        ["clean", "0", "0", "0", "-", "-", "-", "close", "all"],
        ["not-clean", "1", "2", "0", "1", "0", "0", "close", "all"],
        ["not-clean", "2", "4", "0", "1", "1", "0", "close", "all"],
        ["not-clean", "1", "1", "0", "0", "0", "1", "close", "all"],
    ]


def test_for_programs(out: Path) -> None:
    code, output = history("--history-in", str(out / "history"), "--json")
    document = json.loads(output)
    assert (code, document["v"], document["kept"], document["damaged"]) == (0, 1, 366, [])
    third = document["runs"][2]
    assert third["verdict"] == "not clean" and third["since"]["counts"]["grown"] == 1
    [grown] = third["since"]["grown"]
    assert (grown["class"], grown["node"], grown["messages"], grown["more"]) == ("P1", "orders", 3, 1)
    assert document["runs"][0]["since"]["before"] is None


def test_a_damaged_record_is_named_and_makes_the_exit_code_1(out: Path) -> None:
    name = sorted((out / "history").iterdir())[2]
    name.write_bytes(name.read_bytes().replace(b'"bills"', b'"other"'))
    code, output = history("--out", str(out))
    assert code == 1 and f"{name} is damaged: its content does not have the digest" in output
    assert output.count("not clean") == 2
    code, output = history("--out", str(out), "--json")
    assert code == 1 and json.loads(output)["damaged"][0]["file"] == name.name


def test_a_directory_without_records(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert history("--out", str(tmp_path))[0] == 2
    assert f"there is no {tmp_path}/history: name a report's directory by --out" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--history"], "--history wants --out DIR or --history-in DIR"),
        (["--json", "--config", "f", "--out", "d"], "--json goes with --history"),
    ],
)
def test_words_that_make_no_sense(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        commands.main(words)
    assert left.value.code == 2 and message in capsys.readouterr().err
