"""A forked `realmgate` does what the program does: exit code, words, environment, signals. It keeps nothing of ours."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.patience import HANG_S
from tests.kit.processes.forked import ForkedProcess
from tests.kit.processes.gateway import REALMGATE, GatewayProcess, embedded_realm, make_gateway, realmgate

WRONG = "listen: [amqp://127.0.0.1:0]\nrealms: {}\n"


@pytest.fixture
def gateway(tmp_path: Path) -> GatewayProcess:
    return make_gateway(tmp_path, embedded_realm(tmp_path))


def by_the_program(*words: str) -> tuple[int, str, str]:
    done = subprocess.run([REALMGATE, *words], capture_output=True, text=True, timeout=HANG_S, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    "words", [("node", "list", "--config", "wrong.yaml"), ("mappings", "check"), ("node", "paint"), ("--help",)]
)
def test_a_command_does_what_the_program_does(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("wrong.yaml").write_text(WRONG)
    forked = realmgate(*words)
    assert forked == by_the_program(*words) and any(forked[1:])


def test_what_one_imported_the_next_one_has(tmp_path: Path) -> None:
    config = tmp_path / "gateway.yaml"
    config.write_text(f"realm: {{kind: embedded, path: {tmp_path / 'realm'}}}\n")
    for name in ("first", "second", "third"):
        assert realmgate("node", "create", name, "--config", str(config))[0] == 0
    assert [line.split()[0] for line in realmgate("node", "list", "--config", str(config))[1].splitlines()[1:]] == [
        "first", "second", "third",
    ]  # fmt: skip


def test_it_has_the_environment_of_its_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REALMGATE_CONFIG", str(tmp_path / "of-this-test.yaml"))
    assert "of-this-test.yaml" in realmgate("node", "list")[2]
    monkeypatch.delenv("REALMGATE_CONFIG")
    assert "of-this-test.yaml" not in realmgate("node", "list")[2]


def test_a_gateway_ends_by_its_signals(gateway: GatewayProcess) -> None:
    gateway.start()
    assert isinstance(gateway.process, ForkedProcess) and gateway.process.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        gateway.process.wait(0.01)
    process = gateway.process
    gateway.kill()
    assert process.poll() == process.wait() == -signal.SIGKILL
    process.send_signal(signal.SIGKILL)  # to no process: another one may have its number
    gateway.start()
    assert gateway.stop() == 0


def descriptors(gateway: GatewayProcess) -> list[str]:
    return [str(path.readlink()) for path in Path(f"/proc/{gateway.pid}/fd").iterdir()]


def test_it_keeps_no_descriptor_of_others(gateway: GatewayProcess, tmp_path: Path) -> None:
    reading, writing = os.pipe()
    gateway.start()
    beside = make_gateway(tmp_path / "beside", embedded_realm(tmp_path / "beside"))
    beside.start()
    first, second = descriptors(gateway), descriptors(beside)
    assert len(first) == len(second), "the second has what the first has, and nothing of the first"
    assert str(Path(f"/proc/self/fd/{writing}").readlink()) not in first
    os.close(reading)
    os.close(writing)
    beside.end_well()
    gateway.end_well()


def test_others_start_the_program_itself(gateway: GatewayProcess) -> None:
    gateway.environment["PYTHONUTF8"] = "1"
    gateway.start()
    assert isinstance(gateway.process, subprocess.Popen)
    gateway.end_well()


def test_it_ends_with_its_suite(tmp_path: Path) -> None:
    script = f"""
import os, pathlib
from tests.kit.processes import forked
from tests.kit.processes.gateway import realmgate
forked.use()
assert realmgate("mappings", "check")[0] == 0
children = pathlib.Path(f"/proc/self/task/{{os.getpid()}}/children").read_text().split()
pathlib.Path({str(tmp_path / "child")!r}).write_text(*children)
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=HANG_S)
    assert not Path(f"/proc/{(tmp_path / 'child').read_text()}").exists()
