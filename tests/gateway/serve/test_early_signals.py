"""SIGTERM right after exec ends `serve`: also as the first process of a container, which has no default handlers."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import yaml

from tests.kit.processes.gateway import REALMGATE, embedded_realm

HEAVY = {"uvloop", "orjson", "cproton", "mappings", "native_backend.log.port", "gateway.serve.serve", "yaml", "sqlite3"}
END_S = 60
WATCHED = """
    import json, signal, sys
    heed = signal.signal

    def told(number, handler):
        before = heed(number, handler)
        if number == signal.SIGTERM:
            print(json.dumps(sorted(sys.modules)), flush=True)
            sys.stdin.read()  # until the test has read that, and sent its signal
        return before

    signal.signal = told
    sys.argv = ["realmgate", "serve", "--config", sys.argv[1]]
    from gateway.cli.main import main
    main()
"""


def config(directory: Path) -> Path:
    path = directory / "gateway.yaml"
    path.write_text(yaml.safe_dump({"listen": ["amqp://127.0.0.1:0"], "realm": embedded_realm(directory)}))
    return path


def as_first_process() -> None:
    """What has no handler is not heard, and that is inherited."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_handlers_come_before_what_takes_its_time(tmp_path: Path, number: signal.Signals) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(WATCHED), config(tmp_path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=as_first_process,
    )  # fmt: skip
    assert process.stdout is not None and process.stdin is not None
    loaded = set(json.loads(process.stdout.readline()))
    if number == signal.SIGINT:
        process.stdin.close()  # its handler comes with the next call
        process.stdin = None
        while not handles(process.pid, number):
            assert process.poll() is None
    process.send_signal(number)
    _, output = process.communicate(timeout=END_S)
    assert not loaded & HEAVY
    assert process.returncode == 0, output
    assert number.name in output


def test_whenever_it_comes_it_is_heard(tmp_path: Path) -> None:
    """Sent as soon as there is a handler, to the command as it is installed."""
    process = subprocess.Popen(
        [REALMGATE, "serve", "--config", config(tmp_path)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=as_first_process,
    )  # fmt: skip
    while not handles(process.pid, signal.SIGTERM):
        assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    out, output = process.communicate(timeout=END_S)
    assert (process.returncode, "ready" in out) == (0, False), output


def handles(pid: int, number: signal.Signals) -> bool:
    """Whether it has a handler for the signal; /proc tells."""
    [caught] = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("SigCgt:")]
    return bool(int(caught.split()[1], 16) & 1 << (number - 1))
