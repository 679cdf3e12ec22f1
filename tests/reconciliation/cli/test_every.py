"""`reconcile --every` beside a live gateway, as an operator runs it: verdicts go on, also over its own kill -9."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from tests.kit.patience import HANG_S, until
from tests.kit.processes.broker import start_broker
from tests.kit.processes.gateway import REALMGATE, GatewayProcess, StartGateway, kafka_realm, realmgate, start_gateway

_PORT = re.compile(r"on port (\d+)\n")
ON = pytest.mark.parametrize("kind", ["embedded", "kafka"])


class Auditor:
    """The command under test. `verdict()`: as it says it over HTTP; without `at_us` where it does not."""

    def __init__(self, gateway: GatewayProcess, directory: Path) -> None:
        self._places = ("--config", gateway.config_path, "--out", directory / "out", "--state", directory / "state")
        self.state, self._log = directory / "state", directory / "auditor.log"
        self._process: subprocess.Popen[bytes] | None = None

    @contextmanager
    def running(self) -> Iterator[None]:
        self._log.unlink(missing_ok=True)
        with self._log.open("ab") as log:
            words = (*self._places, "--every", "1", "--listen", "0")
            command: list[str | Path] = [REALMGATE, "reconcile", *words]
            self._process = process = subprocess.Popen(command, stdout=log, stderr=log, process_group=0)
        try:
            until(lambda: _PORT.search(self.log) or process.poll() is not None, "a port")
            port = _PORT.search(self.log)
            assert port is not None, self.log
            self._port = int(port[1])
            yield
        finally:
            if process.poll() is None:
                self.end(signal.SIGKILL)

    def end(self, how: signal.Signals) -> int:
        """Its exit code, once it has gone. Its JVM gets the signal as well, as from systemd and a terminal."""
        assert self._process is not None
        os.killpg(self._process.pid, how)
        return self._process.wait(HANG_S)

    def verdict(self) -> dict[str, Any]:
        connection = HTTPConnection("127.0.0.1", self._port, timeout=HANG_S)
        try:
            connection.request("GET", "/verdict")
            reply: dict[str, Any] = json.loads(connection.getresponse().read())
            return reply
        except OSError:
            assert self._process is not None and self._process.poll() is None, self.log
            return {}
        finally:
            connection.close()

    def await_(self, what: str, holds: Callable[[dict[str, Any]], object]) -> None:
        """It hangs where it says nothing: a round says every 10 s what remains of it."""
        while not holds(self.verdict()):
            more = partial(self._holds_or_says_more, holds, len(self.log))
            until(more, f"{what}; it says {self.verdict()}, after {self.log[-2000:]}")

    def _holds_or_says_more(self, holds: Callable[[dict[str, Any]], object], length: int) -> bool:
        return bool(holds(self.verdict())) or len(self.log) > length

    @property
    def log(self) -> str:
        return self._log.read_text()

    def whole(self, directory: Path) -> dict[str, Any]:
        """The manifest of one that reads all."""
        words = (*self._places[:2], "--out", directory)
        done = subprocess.run([REALMGATE, "reconcile", *words], capture_output=True, timeout=5 * HANG_S, check=False)
        assert done.returncode in (0, 1), done.stderr
        manifest: dict[str, Any] = json.loads((directory / "manifest.json").read_text())
        return manifest


def use(gateway: GatewayProcess, *words: str) -> None:
    """By a peer's command."""
    code, _, error = realmgate(*words, "--url", f"amqp://{gateway.address}")
    assert code == 0, error


@ON
@pytest.mark.timeout(900)
def test_verdicts_go_on_over_a_kill_and_say_what_one_over_all_says(
    kind: str, new_gateway: StartGateway, tmp_path: Path
) -> None:
    gateway = new_gateway(kind)
    auditor = Auditor(gateway, tmp_path)

    def is_later(than_us: int) -> Callable[[dict[str, Any]], object]:
        return lambda reply: reply.get("at_us", 0) > than_us

    use(gateway, "send", "orders", "--count", "20")
    with auditor.running():
        auditor.await_("a verdict", lambda reply: reply.get("verdict") == "clean")
        first = auditor.verdict()
        use(gateway, "receive", "orders", "--count", "5")
        auditor.await_("the next verdict", is_later(first["at_us"]))
        assert auditor.end(signal.SIGKILL) == -signal.SIGKILL
    use(gateway, "send", "orders", "--count", "10")
    with auditor.running():
        auditor.await_("a verdict of the next process", lambda reply: reply.get("verdict") == "clean")
        states = [file.name for file in auditor.state.iterdir() if file.name.startswith("state-")]
        assert [name > "state-000002" for name in states] == [True], "it went on from the state of the killed one"
        use(gateway, "receive", "orders", "--count", "5")
        at_us = auditor.verdict()["at_us"]
        auditor.await_("the one behind", is_later(at_us))
        auditor.await_("and one that began behind", is_later(auditor.verdict()["at_us"]))
        assert auditor.end(signal.SIGTERM) == 0 and auditor.log.endswith("reconcile: stopped\n")
    books = json.loads((tmp_path / "out" / "manifest.json").read_text())["balance"]
    [queue] = books["durables"]
    assert (queue["entitled"], queue["acknowledged"], queue["available"], books["difference"]) == (30, 10, 20, 0)
    assert books == auditor.whole(tmp_path / "whole")["balance"]


@pytest.mark.timeout(900)
def test_it_goes_on_when_kafka_is_back(tmp_path: Path) -> None:
    """While there is no broker the verdict before stays with its age, and why there is no other one is said."""
    broker = start_broker(tmp_path / "kafka")
    try:
        gateway = start_gateway(tmp_path / "gateway", kafka_realm(broker.bootstrap, "um"))
        use(gateway, "send", "orders", "--count", "3")
        assert gateway.stop() == 0
        auditor = Auditor(gateway, tmp_path)
        with auditor.running():
            auditor.await_("a verdict", lambda reply: reply.get("verdict") == "clean")
            broker.kill()
            auditor.await_("rounds that fail", lambda reply: reply.get("failed", {}).get("rounds", 0) >= 2)
            before = auditor.verdict()
            assert before["verdict"] == "clean" and broker.bootstrap in before["failed"]["why"], before
            broker.restart()
            auditor.await_("a later verdict", lambda reply: reply["at_us"] > before["at_us"] and "failed" not in reply)
            assert auditor.verdict()["verdict"] == "clean"
            assert auditor.end(signal.SIGTERM) == 0
    finally:
        broker.stop()
