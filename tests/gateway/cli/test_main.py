"""The command line as an operator meets it: what it prints, where, and its exit codes."""

from __future__ import annotations

import json
import os
import pty
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.cli.drain.counts import counted_by_realm
from gateway.config.settings import load_settings
from native_backend.log.port import Failure, LogError
from native_backend.shard import state_reader as observing
from tests.gateway.cli.command_line import Run, config, run
from tests.kit.patience import HANG_S

__all__ = ["config", "run"]  # fixtures

EXECUTABLE = Path(sys.executable).with_name("realmgate")


def test_the_life_of_a_node(run: Run) -> None:
    code, out, err = run("node", "create", "orders")
    assert (code, err) == (0, "")
    assert out.startswith("queue orders is there: store ")
    assert out.rstrip().endswith("topic um.node.orders")
    assert run("node", "create", "orders", "--kind", "queue")[1] == out, "idempotent"
    assert run("node", "create", "news", "--kind", "channel")[0] == 0
    code, out, _ = run("node", "list")
    assert code == 0
    lines = [line.split() for line in out.splitlines()]
    assert [line[:2] for line in lines] == [["NAME", "KIND"], ["news", "channel"], ["orders", "queue"]]
    assert len({line.index("um.node") for line in out.splitlines()[1:]}) == 1, "aligned"
    assert run("node", "delete", "news", "--yes")[:2] == (0, "channel news is deleted\n")
    assert "news" not in run("node", "list")[1]


COMMANDS = [
    ("node", "list"), ("node", "create", "orders"), ("node", "export"), ("durable", "list"), ("audit",),
    ("queue", "peek", "orders"), ("queue", "purge", "orders", "--yes"), ("acl", "list", "--realm"),
    ("decisions", "list"),
    ("trace", "1:2"), ("trace", "1:2", "--gateway", "http://127.0.0.1:1"),
    ("connection", "close", "1.1", "--reason", "stuck", "--as", "anonymous"),
    ("connection", "close", "1.1", "--reason", "stuck", "--as", "anonymous", "--gateway", "http://127.0.0.1:1"),
]  # fmt: skip


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_realm_that_cannot_be_opened_is_a_sentence(
    run: Run, config: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    """By REALMGATE_CONFIG, which counts for what reads the realm, whatever gateway is asked besides."""
    config.with_name("file").write_text("no directory\n")
    config.write_text('realm: {kind: embedded, path: file/realm}\nadmin: {listen: "http://127.0.0.1:1"}\n')
    monkeypatch.setenv("REALMGATE_CONFIG", str(config))
    code, out, err = run(*words, configured=False)
    assert (code, out) == (2, "")
    assert err.startswith("realmgate: ") and "file/realm" in err, err


def test_a_drain_does_not_need_to_read_the_realm(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no directory\n")
    (tmp_path / "gateway.yaml").write_text("realm: {kind: embedded, path: file/realm}\n")
    assert counted_by_realm(load_settings(tmp_path / "gateway.yaml"), ["orders"]) == {}


def test_json(run: Run) -> None:
    created = json.loads(run("node", "create", "orders", "--json")[1])
    assert created["name"] == "orders"
    assert json.loads(run("node", "list", "--json")[1]) == [{**created, "messages": 0, "problem": None}]
    shown = json.loads(run("node", "show", "orders", "--json")[1])
    assert {key: shown[key] for key in created} == created
    assert (shown["first"], shown["end"]) == (0, 0)
    assert [durable["name"] for durable in shown["durables"]] == ["queue"]


def test_what_is_not_counted_is_unknown(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    run("node", "create", "orders")
    assert [line.split()[2] for line in run("node", "list")[1].splitlines()] == ["MESSAGES", "0"]
    monkeypatch.setattr(observing, "COUNTED_MAX", -1)
    assert [line.split()[2] for line in run("node", "list")[1].splitlines()] == ["MESSAGES", "unknown"]
    assert json.loads(run("node", "list", "--json")[1])[0]["messages"] is None
    assert "\n  messages unknown\n" in run("node", "show", "orders")[1]
    shown = json.loads(run("node", "show", "orders", "--json")[1])
    assert (shown["messages"], shown["durables"][0]["messages"]) == (None, None)
    header, row = (line.split() for line in run("durable", "list")[1].splitlines())
    assert header[6:10] == ["STORED", "WAITING", "UNSETTLED", "DELAYED"]
    assert row[6:10] == ["unknown"] * 4
    [listed] = json.loads(run("durable", "list", "--json")[1])
    assert [listed[name] for name in ("stored", "waiting", "unsettled", "delayed")] == [None] * 4


def test_show_for_people(run: Run) -> None:
    run("node", "create", "orders")
    code, out, _ = run("node", "show", "orders")
    assert code == 0
    assert out.startswith("queue orders\n  store ")
    assert "DURABLE" in out
    assert "um.queue.orders" in out


def test_list_takes_a_pattern(run: Run) -> None:
    for name in ("a.1", "a.2", "b.1"):
        run("node", "create", name)
    assert [node["name"] for node in json.loads(run("node", "list", "a.*", "--json")[1])] == ["a.1", "a.2"]
    assert [node["name"] for node in json.loads(run("node", "list", "b.1", "--json")[1])] == ["b.1"]


def test_an_unknown_node(run: Run) -> None:
    for action in ("show", "delete"):
        code, out, err = run("node", action, "nowhere")
        assert (code, out) == (1, "")
        assert "there is no node nowhere" in err


def test_another_kind_under_that_name(run: Run) -> None:
    run("node", "create", "orders")
    code, _, err = run("node", "create", "orders", "--kind", "channel")
    assert code == 1
    assert "exists as a queue" in err


@pytest.mark.parametrize("name", ["a b", "ü/€", "x\ny", "\x1b[31m", '"', "-dash", "*", "日本語" * 50])
def test_any_name(run: Run, name: str) -> None:
    code, out, _ = run("node", "create", "--json", "--", name)
    assert code == 0
    assert json.loads(out)["name"] == name
    listed = run("node", "list")[1]
    assert len(listed.splitlines()) == 2, "one line for one node"
    assert "\x1b" not in listed
    assert run("node", "delete", "--", name)[0] == 0


@pytest.mark.parametrize(("name", "says"), [("", "not empty"), ("x" * 1025, "1025 octets"), ("\udcff", "not UTF-8")])
def test_a_name_that_cannot_be(run: Run, name: str, says: str) -> None:
    code, _, err = run("node", "create", name)
    assert code == 1
    assert says in err


def test_all_problems_of_a_configuration_are_reported(run: Run, config: Path) -> None:
    config.write_text("realm: {kind: nowhere}\nlisten: 5\n", encoding="utf-8")
    for words in (("serve",), ("node", "list")):
        code, out, err = run(*words)
        assert (code, out) == (2, "")
        assert [line.split(";")[0] for line in err.splitlines()] == [
            f'{config}:1: realm.kind: there is no "nowhere"',
            f"{config}:2: listen must be a list of addresses, not integer 5",
        ]


def test_tables_that_do_not_load_are_reported(run: Run, config: Path, tmp_path: Path) -> None:
    (tmp_path / "ours/tables").mkdir(parents=True)
    config.write_text("realm: {kind: embedded, path: realm}\nmappings: {dir: ours}\n", encoding="utf-8")
    code, out, err = run("serve")
    assert (code, out) == (2, "")
    assert "ours/tables" in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("cause", "remedy"),
    [
        ("unavailable", "start it"),
        ("fenced", "another gateway serves this realm"),
        ("refused", "give its user the right"),
        ("unexpected", "log's own words"),
    ],
)
def test_a_realm_that_fails_is_reported_with_a_remedy(
    run: Run, monkeypatch: pytest.MonkeyPatch, cause: str, remedy: str, tmp_path: Path
) -> None:
    def fails(*_: object) -> None:
        raise LogError(Failure(cause, "no broker answered"))  # type: ignore[arg-type]

    monkeypatch.setattr("gateway.cli.node.open_answering", fails)
    code, out, err = run("node", "list")
    assert (code, out) == (2, "")
    assert err.startswith(f"realmgate: the embedded realm in {tmp_path}/realm: {cause}: no broker answered; ")
    assert remedy in err


@pytest.mark.parametrize(
    ("words", "usage"), [(("node", "list", "a", "b"), "node list"), (("top", "--bogus"), "top"), (("bogus",), "")]
)
def test_a_wrong_word_prints_the_usage_of_its_command(run: Run, words: tuple[str, ...], usage: str) -> None:
    code, out, err = run(*words, configured=False)
    assert (code, out) == (2, "") and err.startswith(f"usage: realmgate {usage} [-h]".replace("  ", " ")), err


def test_a_realm_that_cannot_be_written(run: Run, config: Path, tmp_path: Path) -> None:
    (tmp_path / "realm").write_text("a file is in the way", encoding="utf-8")
    code, out, err = run("node", "list")
    assert (code, out) == (2, "")
    assert err.startswith("realmgate: ")
    assert "realm" in err


@pytest.mark.parametrize(
    "words", [[], ["node"], ["node", "create"], ["nod"], ["node", "show"], ["node", "create", "x", "--kind", "topic"]]
)
def test_a_wrong_command_line(run: Run, words: list[str]) -> None:
    code, out, err = run(*words, configured=False)
    assert (code, out) == (2, "")
    assert "usage: realmgate" in err


def test_version(run: Run) -> None:
    code, out, _ = run("--version", configured=False)
    assert code == 0
    assert out.startswith("realmgate 0.")


def test_mappings_are_passed_on(run: Run) -> None:
    code, out, _ = run("mappings", "explain", "published", "answer=stored", configured=False)
    assert code == 0
    assert "accepted" in out
    assert run("mappings", "explain", "nothing", configured=False)[0] == 2


def command(*words: str, **more: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([EXECUTABLE, *words], capture_output=True, text=True, timeout=HANG_S, **more)  # type: ignore[call-overload, no-any-return]


def test_reconcile_is_a_process_whose_exit_code_is_passed_on(tmp_path: Path) -> None:
    job = tmp_path / "reconciliation"
    job.mkdir()
    (job / "__main__.py").write_text("import sys; print(sys.argv[1:]); sys.exit(7)")
    output = command("reconcile", "--out", "x", "--help", env={**os.environ, "PYTHONPATH": str(tmp_path)})
    assert (output.returncode, output.stdout, output.stderr) == (7, "['--out', 'x', '--help']\n", "")


def test_console_is_a_process_of_its_own_and_needs_no_configuration_for_named_gateways(tmp_path: Path) -> None:
    page = tmp_path / "console"
    page.mkdir()
    (page / "__main__.py").write_text("import sys; print(sys.argv[1:]); sys.exit(7)")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "REALMGATE_CONFIG": str(tmp_path)}
    output = command("console", "--gateway=http://h:1", env=environment)
    assert (output.returncode, output.stdout, output.stderr) == (7, "['--gateway=http://h:1']\n", "")
    output = command("console", "--reports", "x", env=environment)
    assert (output.returncode, output.stdout) == (7, f"['--config', '{tmp_path}', '--reports', 'x']\n")


def test_reconcile_does_not_take_what_lies_around(tmp_path: Path) -> None:
    (tmp_path / "reconciliation.py").write_text("raise SystemExit(99)")
    assert command("reconcile", "--help", cwd=tmp_path).returncode != 99


def _children_s() -> float:
    """Processor time: what else the machine does is not measured."""
    times = os.times()
    return times.children_user + times.children_system


def test_node_commands_take_less_than_a_second(config: Path) -> None:
    durations = []
    for words in (("create", "orders"), ("list",), ("show", "orders"), ("list",), ("delete", "orders")):
        begin = _children_s()
        output = command("node", *words, "--config", str(config), stdin=subprocess.DEVNULL)
        durations.append(_children_s() - begin)
        assert (output.returncode, output.stderr) == (0, ""), "no one is asked without a terminal"
    assert statistics.median(durations) < 3.0  # 0.3 s here; what it must not load is the next test


def test_a_node_command_loads_neither_proton_nor_kafka_nor_spark(config: Path) -> None:
    program = (
        "import sys; from gateway.cli.main import run; code = run(sys.argv[1:]);"
        "heavy = {'proton', 'cproton', 'kafka', 'confluent_kafka', 'pyspark', 'uvloop', 'asyncio'} & set(sys.modules);"
        "sys.exit(code or (f'loaded {heavy}' if heavy else 0))"
    )
    words = ["node", "create", "x", "--config", str(config)]
    done = subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True, timeout=HANG_S)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_reader_that_leaves_is_no_error(config: Path) -> None:
    shell = f"{EXECUTABLE} node list --config {config} | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, timeout=HANG_S)
    assert done.stderr == ""


@pytest.mark.parametrize(("answer", "code", "left"), [(b"n\n", 1, 1), (b"\n", 1, 1), (b"y\n", 0, 0)])
def test_on_a_terminal_delete_asks(config: Path, answer: bytes, code: int, left: int) -> None:
    assert command("node", "create", "orders", "--config", str(config)).returncode == 0
    ours, theirs = pty.openpty()
    words = [str(EXECUTABLE), "node", "delete", "orders", "--config", str(config)]
    with subprocess.Popen(words, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        os.close(theirs)
        os.write(ours, answer)
        out, err = process.communicate(timeout=HANG_S)
    os.close(ours)
    assert (process.returncode, err) == (code, b"")
    assert out.startswith(b"Delete queue orders and its events (at most 0)? [y/N] ")
    listed = command("node", "list", "--json", "--config", str(config))
    assert len(json.loads(listed.stdout)) == left
