"""A real gateway process for tests: `realmgate serve` on a configuration of its own, on a port of its own.

    gateway = start_gateway(tmp_path, embedded_realm(tmp_path))
    gateway.kill(); gateway.restart()      # same configuration, same port

The process's own words are in `log_path`. Errors: `RuntimeError` with the end of that log when it does not get ready
or does not end.
"""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.kit.patience import HANG_S
from tests.kit.processes import forked
from tests.kit.processes.broker import free_port
from tests.kit.processes.forked import ForkedProcess

READY = re.compile(r"ready amqp://(?P<host>[^ ]+):(?P<port>\d+) realm=(?P<kind>\w+)\n")
READY_TIMEOUT_S = HANG_S
STOP_TIMEOUT_S = HANG_S  # it takes five seconds at most on cores of its own
COMMAND_TIMEOUT_S = HANG_S  # a second by itself
RECONCILE_TIMEOUT_S = 5 * HANG_S
ANY_RATE = 1_000_000  # new connections a second: tests that fail on purpose, one after another, wait for no turn
REALMGATE = Path(sys.executable).with_name("realmgate")
OF_OTHER_PROGRAMS = ("console", "reconcile", "what-if")  # they have packages of their own, and threads of those


def embedded_realm(directory: Path) -> dict[str, Any]:
    return {"kind": "embedded", "path": str(directory / "realm")}


def kafka_realm(bootstrap: str, prefix: str) -> dict[str, Any]:
    return {"kind": "kafka", "bootstrap": bootstrap, "prefix": prefix}


@dataclass(slots=True)
class GatewayProcess:
    """A gateway that is, or was, up. `port` stays the same from its first start on."""

    config_path: Path
    log_path: Path
    process: subprocess.Popen[str] | ForkedProcess | None = None
    port: int = 0
    realm_kind: str = ""
    settings: dict[str, Any] = field(default_factory=dict)
    more: list[str] = field(default_factory=list)  # schemes of further listeners, such as amqps
    ports: dict[str, int] = field(default_factory=dict)  # theirs
    environment: dict[str, str] = field(default_factory=dict)  # besides this process's own
    host: str = "127.0.0.1"  # where it listens
    proxies: list[str] = field(default_factory=list)  # networks; where there are some, all listeners are behind proxies
    program: list[str] = field(default_factory=lambda: [str(REALMGATE)])

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self.process is not None, "the gateway is not running"
        return self.process.pid

    def start(self) -> None:
        """Start, and return when it says that it is ready."""
        self.launch()
        self.await_ready()

    def launch(self) -> None:
        """Start, and return at once."""
        assert self.process is None, "the gateway is running already"
        # The kernel may give a port that it chose itself to an outgoing connection while the gateway is down.
        self.port = self.port or free_port()
        for scheme in self.more:
            self.ports.setdefault(scheme, free_port())
        further = [f"{scheme}://127.0.0.1:{self.ports[scheme]}" for scheme in self.more]
        listen: list[Any] = [f"amqp://{self.host}:{self.port}", *further]
        if self.proxies:
            listen = [{"address": url, "proxy_protocol": True, "proxies": [*self.proxies]} for url in listen]
        self.settings["listen"] = listen
        self.config_path.write_text(yaml.safe_dump(self.settings, default_flow_style=None))
        with self.log_path.open("a") as log:
            words = ["serve", "--config", str(self.config_path)]
            if forked.is_used() and self.program == [str(REALMGATE)] and not self.environment:
                self.process = ForkedProcess(words, stderr=log)
            else:
                self.process = subprocess.Popen(
                    [*self.program, *words],
                    stdout=subprocess.PIPE,
                    stderr=log,
                    text=True,
                    env={**os.environ, **self.environment},
                )

    def await_ready(self) -> None:
        ready = READY.fullmatch(self._first_line())
        if ready is None:
            self.kill()
            raise RuntimeError(f"the gateway did not get ready:\n{self.log()}")
        self.port, self.realm_kind = int(ready["port"]), ready["kind"]
        for scheme in self.more:
            assert self.process is not None and self.process.stdout is not None
            line = self.process.stdout.readline()
            assert line.startswith(f"ready {scheme}://127.0.0.1:"), line
            self.ports[scheme] = int(line.split()[1].rpartition(":")[2])

    def is_ready(self) -> bool:
        """It has said so since it was launched; `await_ready` takes it in."""
        assert self.process is not None and self.process.stdout is not None
        return bool(select.select([self.process.stdout], [], [], 0)[0])

    def stop(self) -> int:
        """SIGTERM; returns the exit code. Stopping what is not running returns 0."""
        return self._end(signal.SIGTERM)

    def end_well(self) -> None:
        """Stop: it ends with 0, and its log has no traceback."""
        assert self.stop() == 0, self.log()
        assert "Traceback" not in self.log(), self.log()

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        """Start again, same configuration and port, after `stop` or `kill`; stops it first if need be."""
        self.stop()
        self.start()

    def await_log(self, words: str) -> None:
        """Wait until the process has said that on stderr."""
        deadline = time.monotonic() + READY_TIMEOUT_S
        while words not in self.log_path.read_text():
            if time.monotonic() > deadline:
                raise RuntimeError(f"the gateway did not say {words!r}:\n{self.log()}")
            time.sleep(0.02)

    def await_exit(self) -> int:
        """Wait until the process ends by itself; its exit code."""
        assert self.process is not None and self.process.stdout is not None
        code = self.process.wait(STOP_TIMEOUT_S)
        self.process.stdout.close()
        self.process = None
        return code

    def command(self, *arguments: str) -> str:
        """`realmgate ARGUMENTS --config ...` beside the gateway; returns what it prints."""
        code, printed, complaints = realmgate(*arguments, "--config", str(self.config_path))
        if code != 0:
            raise RuntimeError(f"realmgate {' '.join(arguments)} failed ({code}): {complaints}")
        return printed

    def log(self) -> str:
        """The end of what the process wrote on stderr."""
        return self.log_path.read_text()[-1_000_000:]

    def rss_bytes(self) -> int:
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def _first_line(self) -> str:
        assert self.process is not None and self.process.stdout is not None
        readable, _, _ = select.select([self.process.stdout], [], [], READY_TIMEOUT_S)
        return self.process.stdout.readline() if readable else ""

    def _end(self, how: signal.Signals) -> int:
        process, self.process = self.process, None
        if process is None:
            return 0
        process.send_signal(how)
        begin = time.monotonic()
        try:
            code = process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise RuntimeError(
                f"still running {time.monotonic() - begin:.0f} s after {how.name}:\n{self.log()}"
            ) from None
        finally:
            if process.stdout is not None:
                process.stdout.close()
        return code


def start_gateway(directory: Path, realm: dict[str, Any], **settings: Any) -> GatewayProcess:
    """Start a gateway that keeps its configuration and log in `directory`. Every node is created on attach unless
    `nodes` says otherwise; `settings` are further top-level keys of the configuration."""
    gateway = make_gateway(directory, realm, **settings)
    gateway.start()
    return gateway


def realmgate(*arguments: str) -> tuple[int, str, str]:
    """`realmgate ARGUMENTS`: its exit code, what it prints, what it complains of."""
    if forked.is_used() and arguments[0] not in OF_OTHER_PROGRAMS:
        return _forked(*arguments)
    done = subprocess.run(
        [REALMGATE, *arguments], capture_output=True, text=True, timeout=COMMAND_TIMEOUT_S, check=False
    )
    return done.returncode, done.stdout, done.stderr


def reconciled(config: Path, out: Path, *more: str | Path) -> subprocess.CompletedProcess[str]:
    """`realmgate reconcile` of the realm in that configuration, with the report in `out`."""
    command: list[str | Path] = [REALMGATE, "reconcile", "--config", config, "--out", out, *more]
    return subprocess.run(command, capture_output=True, text=True, timeout=RECONCILE_TIMEOUT_S, check=False)


def _forked(*arguments: str) -> tuple[int, str, str]:
    with tempfile.TemporaryFile("w+") as printed, tempfile.TemporaryFile("w+") as complaints:
        process = ForkedProcess([*arguments], stderr=complaints, stdout=printed)
        try:
            code = process.wait(COMMAND_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        printed.seek(0)
        complaints.seek(0)
        return code, printed.read(), complaints.read()


def make_gateway(directory: Path, realm: dict[str, Any], **settings: Any) -> GatewayProcess:
    """The same, not started."""
    directory.mkdir(parents=True, exist_ok=True)
    everything: dict[str, Any] = {"realm": realm, "nodes": {"create_on_attach": ["*"]}, **settings}
    everything["limits"] = {"connections_per_s": ANY_RATE, **everything.get("limits", {})}
    return GatewayProcess(directory / "gateway.yaml", directory / "gateway.log", settings=everything)


StartGateway = Callable[..., GatewayProcess]
