"""The system under test: one gateway, its realm, and the proxies before and behind it. Everything lives in one
directory.

Errors: RuntimeError when something does not come up again.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.kit.processes.broker import Broker
from tests.kit.processes.full_disk import Disk
from tests.kit.processes.gateway import REALMGATE
from tests.kit.processes.jumping_clock import JumpingClock
from tests.kit.processes.networks import Network
from tests.kit.processes.preloaded import together
from tests.kit.tables.renamed import Tables
from tests.torture.crash_points import MARK
from tests.torture.system.proxy import Proxy

COULD_NOT_RUN = 2  # what `realmgate serve` ends with when its realm is not there
START_S = 90.0  # a gateway whose Kafka recovers beside eight builds
PUBLISH_DEADLINE_MS = 2500
APPLY_S = 60.0
NODES: list[dict[str, str | int]] = [
    {"name": "spread", "partitions": 4},
    {"name": "levels", "priority-levels": 3},
    {"name": "wide", "kind": "channel", "partitions": 3},
]  # those that no attach makes
LIMITS = {"publish_deadline_ms": PUBLISH_DEADLINE_MS, "idle_timeout_ms": 6000}


@dataclass(slots=True)
class Deployment:
    """See the module's docstring. `brokers` is empty for an embedded realm."""

    directory: Path
    prefix: str
    brokers: list[Broker] = field(default_factory=list)
    kafka_proxy: Proxy | None = None
    network: Network | None = None  # each of several brokers is a host of it, where the machine makes namespaces
    process: subprocess.Popen[str] | None = None
    front: Proxy = field(default_factory=lambda: Proxy(0))
    disk: Disk | None = None
    clock: JumpingClock | None = None  # of the gateway, from `open` on
    starts: int = 0
    retain_s: int = 0  # so long an ended event of a queue stays, and evidence; 0: for ever, as far as this run goes

    @property
    def kind(self) -> str:
        return "kafka" if self.brokers else "embedded"

    @property
    def place(self) -> str:
        return "cluster" if len(self.brokers) > 1 else self.kind

    @property
    def realm_path(self) -> Path:
        return self.directory / "realm"

    @property
    def tables(self) -> Tables:
        return Tables(self.directory / "tables-of-ours")

    @property
    def mark(self) -> Path:
        return self.directory / "crash-at"

    @property
    def log_path(self) -> Path:
        return self.directory / "gateway.log"

    @property
    def config_path(self) -> Path:
        return self.directory / "gateway.yaml"

    @property
    def bootstrap(self) -> str:
        if self.kafka_proxy is not None:
            return f"127.0.0.1:{self.kafka_proxy.port}"
        return ",".join(broker.bootstrap for broker in self.brokers)

    def open(self) -> None:
        """Configuration, nodes and first start."""
        self.directory.mkdir(parents=True, exist_ok=True)
        self.clock = JumpingClock(self.directory)
        if not self.brokers:
            self.disk = Disk(self.directory, self.realm_path)
        self.config_path.write_text(yaml.safe_dump(self._settings(), default_flow_style=None))
        nodes = self.directory / "nodes.yaml"
        nodes.write_text(yaml.safe_dump(NODES))
        command = [str(REALMGATE), "node", "apply", "--config", str(self.config_path), "--yes", str(nodes)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=APPLY_S, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"there are no nodes: {done.stderr}")
        self.start()

    def _settings(self) -> dict[str, Any]:
        realm: dict[str, Any] = {"kind": "embedded", "path": str(self.realm_path)}
        if self.brokers:
            realm = {"kind": "kafka", "bootstrap": self.bootstrap, "prefix": self.prefix}
        return {
            "listen": ["amqp://127.0.0.1:0"],
            "realm": realm,
            "nodes": {"create_on_attach": ["*"]},
            "mappings": {"dir": str(self.tables.directory)},
            "limits": LIMITS | ({"retain_s": self.retain_s, "evidence_s": self.retain_s} if self.retain_s else {}),
        }

    # -- the gateway

    def launch(self) -> None:
        """Start, and do not wait."""
        assert self.process is None and self.clock is not None
        preloaded = together(*(part.environment for part in (self.clock, self.disk) if part))
        environment = {**os.environ, MARK: str(self.mark), **preloaded}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # a start that compiles everything costs a second more
        environment["PYTHONPYCACHEPREFIX"] = str(self.directory.parent / "bytecode")
        with self.log_path.open("a") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.torture.crash_points", "serve", "--config", str(self.config_path)],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=environment,
            )
        self.starts += 1

    def start(self) -> None:
        """Start, as often as it takes: a realm that is not there yet is no fault of the gateway."""
        until = time.monotonic() + START_S
        while True:
            self.launch()
            if self.await_ready():
                return
            code = self.reap()
            if code != COULD_NOT_RUN or time.monotonic() > until:
                raise RuntimeError(f"the gateway does not start:\n{self.log()}")
            time.sleep(0.2)

    def await_ready(self) -> bool:
        """True when it says that it is ready; False when it ends before."""
        assert self.process is not None and self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("ready amqp://"):
                self.front.target = int(line.split()[1].rpartition(":")[2])
                return True
        return False

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.reap()

    def check(self) -> None:
        """No one asked it to end."""
        code = self.process.poll() if self.process is not None else None
        assert code is None, f"the gateway ended with {code}\n{self.log()}"

    def signal(self, what: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(what)

    def reap(self, timeout_s: float = 60.0) -> int:
        """Wait for its end."""
        assert self.process is not None and self.process.stdout is not None
        code = self.process.wait(timeout_s)
        self.process.stdout.close()
        self.process = None
        return code

    def stop(self) -> int:
        """In order; the exit code."""
        self.signal(signal.SIGTERM)
        return self.reap()

    def log(self) -> str:
        return self.log_path.read_text()[-4000:]

    def close(self) -> None:
        """Whatever still runs, ends."""
        if self.process is not None:
            self.process.send_signal(signal.SIGCONT)
            self.kill()
        self.front.close()
