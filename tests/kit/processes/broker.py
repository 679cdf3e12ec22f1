"""A real Kafka node for tests, in its own directory and on its own port, started by `deploy/kafka/start.sh`.

Tests that only need a Kafka take the session fixture `kafka_bootstrap`; those that kill or restart one start their own:

    broker = start_broker(tmp_path / "kafka")
    broker.kill()      # SIGKILL
    broker.restart()   # same directory, same port

Errors: `RuntimeError` with the script's own words when the node does not come up.
"""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from tests.kit.patience import HANG_S
from tests.kit.processes.networks import Network

SCRIPTS = Path(__file__).parents[3] / "deploy" / "kafka"
START_TIMEOUT_S = 400.0  # the first start on a machine downloads the class path
PORT, CONTROLLER_PORT = 9092, 9093  # on hosts of their own, where all are free
TRIES = "900"  # 180 s and more: a machine that is busy starts a JVM slowly


@dataclass(slots=True)
class Broker:
    """A node that is, or was, up. `bootstrap` stays the same for its whole life."""

    directory: Path
    bootstrap: str
    pid: int
    environment: dict[str, str] = field(default_factory=dict)
    host: str = "127.0.0.1"
    inside: list[str] = field(default_factory=list)  # what stands before a command that is to run where it runs

    def stop(self) -> None:
        """Stop in order (SIGTERM, flushed logs). Stopping twice is no error."""
        _run("stop.sh", self.directory, port=None)

    def kill(self) -> None:
        """SIGKILL, and wait until the process is gone."""
        os.kill(self.pid, signal.SIGKILL)
        deadline = time.monotonic() + HANG_S
        while _is_alive(self.pid):
            if time.monotonic() > deadline:
                raise RuntimeError(f"process {self.pid} is still there 10 s after SIGKILL")
            time.sleep(0.01)

    def restart(self) -> None:
        """Start again after `stop` or `kill`: same data, same address."""
        self._start(int(self.bootstrap.rpartition(":")[2]))

    def _start(self, port: int) -> None:
        _run("start.sh", self.directory, port, self.environment, self.inside)
        self.bootstrap = f"{self.host}:{port}"
        self.pid = int((self.directory / "pid").read_text())


def start_broker(
    directory: Path, seen_at: int = 0, *, is_killed: bool = True, other: Mapping[str, str] | None = None
) -> Broker:
    """Start a node that keeps everything in `directory`, on a free port of loopback; returns when it answers. One that
    is up there is left as it is; one that was there comes back with its data and its port.
    `seen_at`: the port that it tells its clients, of a proxy of theirs. `is_killed`: a test kills or stops it; it then
    serves again after 2 s. The controller of a node that stays is patient with a busy machine. `other`: settings of
    `server.properties`."""
    settings = dict(other or {})
    if seen_at:
        settings["advertised.listeners"] = f"PLAINTEXT://127.0.0.1:{seen_at},CONTROLLER://127.0.0.1:@CONTROLLER@"
    if not is_killed:
        settings["broker.session.timeout.ms"] = "30000"
    extra = directory / "extra.properties"
    directory.mkdir(parents=True, exist_ok=True)
    extra.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    broker = Broker(directory, "", 0, {"KAFKA_EXTRA": str(extra)})
    was_at = directory / "port"
    broker._start(int(was_at.read_text()) if was_at.exists() else free_port())
    return broker


def start_cluster(directory: Path) -> list[Broker]:
    """Three nodes that replicate each other; each can be killed and restarted by itself."""
    addresses = _run("cluster.sh", directory, port=None).split(",")
    nodes = [directory / "cluster" / str(number) for number in (1, 2, 3)]
    return [
        Broker(node, address, int((node / "pid").read_text())) for node, address in zip(nodes, addresses, strict=True)
    ]


GIVEN: set[int] = set()


def free_port() -> int:
    """A free port below the range that the kernel gives to outgoing connections: a client that reconnects while its
    server is down must not take the server's port. Of the range of this lane (`tests/lanes.py`): others take none. Nor
    one that was given lately, and need not listen yet."""
    first, count = int(os.environ.get("PORTS_FROM", "10000")), int(os.environ.get("PORTS", "20000"))
    if len(GIVEN) > count // 2:
        GIVEN.clear()
    while True:
        port = random.randrange(first, first + count)
        if port in GIVEN:
            continue
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            GIVEN.add(port)
            return port


def start_cluster_in(network: Network, directory: Path) -> list[Broker]:
    """The same, one node on each host of that network. Who is silent for 4 s is no replica that a write waits for."""
    _run("libs.sh", directory, port=None)  # only here is a way to download them
    brokers = [Broker(directory / str(host), "", 0, {}, network.address(host)) for host in network.hosts]
    identity = _run("cluster-id.sh", directory, port=None)
    voters = ",".join(f"{host}@{network.address(host)}:{CONTROLLER_PORT}" for host in network.hosts)
    for host, broker in zip(network.hosts, brokers, strict=True):
        broker.directory.mkdir(parents=True)
        files = {"node": host, "voters": voters, "cluster": identity, "controller-port": CONTROLLER_PORT}
        for name, content in files.items():
            (broker.directory / name).write_text(f"{content}\n")
        extra = broker.directory / "extra.properties"
        extra.write_text(
            "listeners=PLAINTEXT://0.0.0.0:@PORT@,CONTROLLER://0.0.0.0:@CONTROLLER@\n"
            f"advertised.listeners=PLAINTEXT://{broker.host}:@PORT@,CONTROLLER://{broker.host}:@CONTROLLER@\n"
            "replica.lag.time.max.ms=4000\n"
        )
        broker.environment = {"KAFKA_EXTRA": str(extra), "KAFKA_JVM": "-Xms512m -Xmx512m"}
        broker.inside = network.command(host)
    try:
        with ThreadPoolExecutor(len(brokers)) as starts:  # together: one alone has no quorum, and would not answer
            for start in [starts.submit(broker._start, PORT) for broker in brokers]:
                start.result()
    except RuntimeError:
        for broker in brokers:
            broker.stop()
        network.close()
        raise
    return brokers


def _run(
    script: str, directory: Path, port: int | None, more: dict[str, str] | None = None, inside: Sequence[str] = ()
) -> str:
    environment = {**os.environ, "KAFKA_DIR": str(directory), "KAFKA_TRIES": TRIES, **(more or {})}
    environment.pop("KAFKA_PORT", None)
    if port is not None:
        environment["KAFKA_PORT"] = str(port)
    done = subprocess.run(
        [*inside, SCRIPTS / script],
        env=environment,
        capture_output=True,
        text=True,
        timeout=START_TIMEOUT_S,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{script} failed ({done.returncode}):\n{done.stderr}")
    return done.stdout.strip()


def _is_alive(pid: int) -> bool:
    """A dead child that no one has reaped (state Z) is not alive."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rpartition(")")[2].split()[0] != "Z"
