"""Spark's own cluster on loopback: a master and workers of one core, from what is in pyspark's wheel.

with standalone(directory, workers=2) as cluster: ... cluster.url ... cluster.kill(cluster.workers[0])
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pyspark

from tests.kit.patience import HANG_S, until
from tests.kit.processes.broker import free_port

SPARK = Path(pyspark.__file__).parent
_PACKAGE = "org.apache.spark.deploy"
EXECUTOR = {"spark.executor.memory": "512m"}


@dataclass(slots=True)
class Worker:
    """`directory`: below it each executor has APPLICATION/NUMBER/stderr."""

    process: subprocess.Popen[bytes]
    directory: Path

    @property
    def tasks(self) -> int:
        """So many were begun here."""
        logs = self.directory.glob("app-*/*/stderr")
        return sum(log.read_text(errors="replace").count("Running task") for log in logs)


@dataclass(slots=True)
class Cluster:
    url: str
    directory: Path
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    workers: list[Worker] = field(default_factory=list)

    def add_worker(self) -> Worker:
        """Returns when the master knows it."""
        name = f"worker-{len(self.workers)}"
        words = ("--cores", "1", "--memory", "1g", "--work-dir", str(self.directory / name), self.url)
        process = self.start(f"{_PACKAGE}.worker.Worker", name, free_port(), *words)
        self._await(process, name, "Successfully registered with master")
        self.workers.append(Worker(process, self.directory / name))
        return self.workers[-1]

    def start(self, what: str, name: str, port: int, *words: str) -> subprocess.Popen[bytes]:
        there = ("--host", "127.0.0.1", "--port", str(port), "--webui-port", str(free_port()))
        own = {"SPARK_HOME": str(SPARK), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "256m"}
        with (self.directory / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(  # the script becomes the JVM: its id is the JVM's
                [SPARK / "bin" / "spark-class", what, *there, *words],
                env={**os.environ, **own},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self.processes.append(process)
        return process

    def await_master(self) -> None:
        self._await(self.processes[0], "master", "I have been elected leader")

    def kill(self, worker: Worker) -> None:
        """With its executors, as a machine that is gone."""
        children = Path(f"/proc/{worker.process.pid}/task").glob("*/children")
        executors = [int(pid) for path in children for pid in path.read_text().split()]
        for pid in (worker.process.pid, *executors):
            os.kill(pid, signal.SIGKILL)
        worker.process.wait(HANG_S)

    def _await(self, process: subprocess.Popen[bytes], name: str, words: str) -> None:
        log = self.directory / f"{name}.log"

        def is_said() -> bool:
            assert process.poll() is None, f"{name} ended: {log.read_text(errors='replace')[-2000:]}"
            return words in log.read_text(errors="replace")

        until(is_said, f"{name} to say {words!r}")


@contextmanager
def standalone(directory: Path, workers: int) -> Iterator[Cluster]:
    port = free_port()
    cluster = Cluster(f"spark://127.0.0.1:{port}", directory)
    try:
        cluster.start(f"{_PACKAGE}.master.Master", "master", port)
        cluster.await_master()
        for _ in range(workers):
            cluster.add_worker()
        yield cluster
    finally:
        for process in reversed(cluster.processes):  # a worker ends its executors
            process.terminate()
            process.wait(HANG_S)
