"""Debian's RabbitMQ (package rabbitmq-server) as a program of others: a node of its own in a directory, on free ports,
with its AMQP 1.0 and shovel plugins; the shovel pushes what a queue holds into another broker, by AMQP 1.0.

Errors: `RuntimeError` with the end of the node's log, or the command's own words.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

from tests.kit.patience import HANG_S
from tests.kit.processes.broker import free_port

PROGRAMS = Path("/usr/lib/rabbitmq/bin")  # those in /usr/sbin change to another user
START_TIMEOUT_S = HANG_S
STOP_TIMEOUT_S = HANG_S


@dataclass(slots=True)
class RabbitMQ:
    """A node that is up."""

    directory: Path
    port: int = field(default_factory=free_port)
    _environment: dict[str, str] = field(default_factory=dict)
    _processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self) -> None:
        names_port = free_port()  # of Erlang's daemon of names: a node starts one that outlives it, if none is there
        own = {name: str(self.directory / name.lower()) for name in ("MNESIA_BASE", "LOG_BASE", "CONF_ENV_FILE")}
        own |= {"NODENAME": "walk@localhost", "NODE_IP_ADDRESS": "127.0.0.1", "NODE_PORT": str(self.port)}
        own |= {"DIST_PORT": str(free_port()), "CONFIG_FILE": str(self.directory / "rabbitmq")}
        own |= {"ENABLED_PLUGINS_FILE": str(self.directory / "plugins"), "PID_FILE": str(self.directory / "pid")}
        self._environment = {f"RABBITMQ_{name}": value for name, value in own.items()}
        self._environment |= {"HOME": str(self.directory), "ERL_EPMD_PORT": str(names_port)}
        self._environment["ERL_EPMD_ADDRESS"] = "127.0.0.1"
        self.directory.mkdir(parents=True)
        (self.directory / "plugins").write_text("[rabbitmq_amqp1_0,rabbitmq_shovel].\n")
        (self.directory / "rabbitmq.conf").touch()
        self._launch("epmd", "-address", "127.0.0.1")
        self._launch(str(PROGRAMS / "rabbitmq-server"))
        self._await("completed with 2 plugins")

    def stop(self) -> None:
        for process in reversed(self._processes):
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def shovel(self, queue: str, address: str, node: str) -> None:
        """Move what is in the queue now, each acknowledged when the other broker has accepted it; then end."""
        here = {"src-protocol": "amqp091", "src-uri": f"amqp://127.0.0.1:{self.port}", "src-queue": queue}
        there = {"dest-protocol": "amqp10", "dest-uri": f"amqp://{address}", "dest-address": node}
        how = {"ack-mode": "on-confirm", "src-delete-after": "queue-length"}
        self.command("set_parameter", "shovel", f"leave-{queue}", json.dumps(here | there | how))

    def await_empty(self, queue: str) -> None:
        """Wait until the node holds no message of a queue any more, given out or not."""
        deadline = time.monotonic() + STOP_TIMEOUT_S
        while f"{queue}\t0" not in (listed := self.command("list_queues", "name", "messages")).splitlines():
            if time.monotonic() > deadline:
                raise RuntimeError(f"{queue} still holds messages:\n{listed}")

    def command(self, *arguments: str) -> str:
        done = subprocess.run(
            [PROGRAMS / "rabbitmqctl", "--quiet", *arguments],
            env=os.environ | self._environment,
            capture_output=True,
            text=True,
            timeout=HANG_S,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(f"rabbitmqctl {arguments[0]} failed ({done.returncode}): {done.stdout}{done.stderr}")
        return done.stdout

    def _launch(self, *command: str) -> None:
        with (self.directory / "out.log").open("ab") as log:
            environment = os.environ | self._environment
            self._processes.append(
                subprocess.Popen(command, env=environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
            )

    def _await(self, words: str) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        while words not in (text := (self.directory / "out.log").read_text()):
            if time.monotonic() > deadline or self._processes[-1].poll() is not None:
                self.stop()
                raise RuntimeError(f"RabbitMQ did not start:\n{text[-3000:]}")
            time.sleep(0.1)
