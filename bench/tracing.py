"""How long `realmgate trace` takes over a million outcomes on Kafka, and whether it says what a client did.

    python -m bench.tracing [--outcomes 1000000] [--messages 20] [--seed 19] [--record]

A real Kafka node and a gateway, both begun here and empty. The C load client brings messages through a queue, in
rounds; in each a client of another library brings `NOTED` messages through another queue, ends them at random, and
notes what it did. Then some of these, chosen at random, are traced by delivery tag, and by RUN:SEQ or message-id in
turn, each by a process of its own. Prints seconds of a trace, its processor seconds, and those of the broker and the
gateway meanwhile; `--record` writes results/DATE-COMMIT-tracing.json. Exit code 1: one took longer than required, or
says something else than the client. Errors: `RuntimeError`. Required: at most 10 s; all processor seconds are judged
instead where others used more than 5 % of the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from bench.machine import Machine
from bench.report import keep
from bench.scale.worlds import empty_world
from tests.kit.patience import HANG_S
from tests.kit.processes.admin_pages import Watch
from tests.kit.processes.gateway import REALMGATE, GatewayProcess, kafka_realm, start_gateway
from tests.kit.processes.load_client import load_client
from tests.kit.realm.worlds import KafkaWorld
from tests.kit.wire.clients import used_s
from tests.kit.wire.ledger import Ledger, client

REQUIRED_S = 10.0
FOREIGN_MAX = 0.05
ROUNDS = 20
NOTED = 20  # of a round


def fill(gateway: GatewayProcess, outcomes: int, ledger: Ledger) -> int:
    """So many outcomes, and some more. How many there are."""
    watch = Watch.of(gateway)
    for number in range(ROUNDS):
        for mode in ("send", "receive"):
            command = [str(load_client()), mode, "--address", gateway.address, "--node", "bulk"]
            command += ["--capability", "queue", "--count", str(outcomes // ROUNDS // 2), "--timeout", str(HANG_S)]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        with client(gateway.address) as connection:
            ledger.go_through(connection, "noted", [f"noted-{number}-{at}" for at in range(NOTED)])
        sys.stderr.write(f"bench.tracing: round {number + 1} of {ROUNDS}\n")
    counted = [count for (name, _), count in watch.metrics().items() if name == "realmgate_deliveries_total"]
    return int(sum(counted))


class Tracer:
    """Traces as an operator does. `pids`: the processes that serve it."""

    def __init__(self, gateway: GatewayProcess, pids: list[int]) -> None:
        self.samples: list[dict[str, Any]] = []
        self._gateway, self._pids = gateway, pids

    def trace(self, by: str, *words: str) -> dict[str, Any]:
        """The only message that is found; what that took is a sample."""
        began, before, served_s = time.monotonic(), os.times(), self._served_s()
        command: list[str | Path] = [REALMGATE, "trace", *words, "--json", "--config", self._gateway.config_path]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=10 * HANG_S)
        seconds, after = time.monotonic() - began, os.times()
        if done.returncode != 0:
            raise RuntimeError(f"trace {' '.join(words)} failed ({done.returncode}): {done.stdout}{done.stderr}")
        cpu_s = after.children_user + after.children_system - before.children_user - before.children_system
        took = {"s": seconds, "cpu_s": cpu_s, "served_cpu_s": self._served_s() - served_s}
        self.samples.append({"by": by, **{name: round(value, 2) for name, value in took.items()}})
        [message] = json.loads(done.stdout)["messages"]
        return dict(message)

    def _served_s(self) -> float:
        return sum(map(used_s, self._pids))


def traced(tracer: Tracer, ledger: Ledger, names: list[str]) -> dict[str, Any]:
    """`differ`: those of which the client noted something else, or that have another life by another word."""
    differ = []
    for at, name in enumerate(names):
        message = tracer.trace("tag", ledger.tags[name])
        published = message["life"][0]
        delivery = f"{published['run']}:{published['seq']}"
        again = tracer.trace("message-id", "--message-id", name) if at % 2 else tracer.trace("RUN:SEQ", delivery)
        if not ledger.agrees(name, message) or message != again:
            differ.append(name)
    return {"samples": tracer.samples, "differ": differ}


def too_slow(report: dict[str, Any]) -> bool:
    if report["foreign_cpu"] > FOREIGN_MAX:
        return any(sample["cpu_s"] + sample["served_cpu_s"] > REQUIRED_S for sample in report["samples"])
    return any(sample["s"] > REQUIRED_S for sample in report["samples"])


def summary(report: dict[str, Any]) -> dict[str, Any]:
    kinds = {trace["by"]: [row for row in report["samples"] if row["by"] == trace["by"]] for trace in report["samples"]}
    return {
        by: {f"{name}_{what}": round(agg(row[name] for row in samples), 2) for name in ("s", "cpu_s", "served_cpu_s")
             for what, agg in (("median", median), ("max", max))}
        for by, samples in kinds.items()
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.tracing", description=__doc__)
    parser.add_argument("--outcomes", type=int, default=1_000_000)
    parser.add_argument("--messages", type=int, default=20, help="that are traced")
    parser.add_argument("--seed", type=int, default=19)
    parser.add_argument("--record", action="store_true")
    arguments = parser.parse_args()
    started, choose = time.strftime("%Y-%m-%dT%H%M"), random.Random(arguments.seed)
    ledger = Ledger(choose)
    with tempfile.TemporaryDirectory(prefix="bench-tracing-") as directory, empty_world("kafka") as (world, pids):
        assert isinstance(world, KafkaWorld)
        realm = kafka_realm(world.bootstrap, "tracing")
        gateway = start_gateway(Path(directory), realm, admin={"listen": "http://127.0.0.1:0"})
        try:
            gateway.command("node", "create", "dead")
            gateway.command("node", "create", "noted", "--dead-letter", "dead")
            outcomes = fill(gateway, arguments.outcomes, ledger)
            serving = [gateway.pid, *pids]
            names = choose.sample(sorted(ledger.done), arguments.messages)
            results = Machine(serving).measured(traced, Tracer(gateway, serving), ledger, names)
        finally:
            gateway.stop()
    report = {"outcomes": outcomes, "summary": summary(results), **results}
    if arguments.record:
        keep(started, "tracing", report)
    json.dump({name: figure for name, figure in report.items() if name != "samples"}, sys.stdout, indent=1)
    print()
    return int(bool(results["differ"]) or too_slow(results))


if __name__ == "__main__":
    raise SystemExit(main())
