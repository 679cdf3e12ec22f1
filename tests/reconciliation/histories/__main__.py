"""Live histories in which nothing is wrong, and reconcile each:

    python -m tests.reconciliation.histories [--seed 1] [--runs 100] [--realm kafka] [--steps 40] [--ledger FILE]

A line for each: what was done, and what was found, which is nothing. Exit 1 when something was; the directory of that
history stays. `--ledger` adds a line of JSON for each to a file.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reconciliation.engine import connector, spark
from tests.kit.commit import commit
from tests.kit.processes.broker import start_broker
from tests.kit.processes.gateway import GatewayProcess, embedded_realm, kafka_realm, make_gateway
from tests.reconciliation.conftest import Result, reconciled
from tests.reconciliation.histories.history import History
from tests.reconciliation.judging import objections_to


@dataclass(frozen=True, slots=True)
class Lived:
    """A history that is over."""

    own: Path
    gateway: GatewayProcess
    entry: dict[str, Any]


def main() -> int:
    arguments = _arguments()
    directory = Path(tempfile.mkdtemp(prefix="histories-"))
    broker = start_broker(directory / "kafka") if arguments.realm == "kafka" else None
    (directory / "spark").mkdir()
    session = spark.start(directory / "spark", offsets=0, jars=connector.jars_in(None), cores=2)

    def live(seed: int) -> Lived:
        own = directory / f"seed-{seed}"
        return _lived(own, embedded_realm(own) if broker is None else kafka_realm(broker.bootstrap, f"honest-{seed}"),
                      seed, arguments.steps)  # fmt: skip

    def reconcile(realm: Any, **more: Any) -> Result:
        return reconciled(session, realm, Path(tempfile.mkdtemp(prefix="out-", dir=directory)), **more)

    wrong = 0
    try:
        for lived in _one_ahead(live, range(arguments.seed, arguments.seed + arguments.runs)):
            began = time.monotonic()
            objections = objections_to(lived.gateway, reconcile, lived.own / "ledgers")
            judged = {"judged_s": round(time.monotonic() - began, 1), "found": objections}
            entry = {"commit": commit(), "realm": arguments.realm, **lived.entry, **judged}
            print(json.dumps(entry), flush=True)
            if arguments.ledger is not None:
                with arguments.ledger.open("a") as out:
                    out.write(json.dumps(entry, separators=(",", ":")) + "\n")
            wrong += bool(objections)
            if not objections:
                shutil.rmtree(lived.own)
    finally:
        session.stop()
        if broker is not None:
            broker.stop()
    if wrong:
        print(f"{wrong} histories in which something was found are in {directory}", file=sys.stderr)
        return 1
    shutil.rmtree(directory)
    return 0


def _one_ahead(live: Callable[[int], Lived], seeds: Iterable[int]) -> Iterator[Lived]:
    """Each, while the next one is lived."""
    with ThreadPoolExecutor(1) as living:
        coming: Future[Lived] | None = None
        for seed in seeds:
            before, coming = coming, living.submit(live, seed)
            if before is not None:
                yield before.result()
        if coming is not None:
            yield coming.result()


def _lived(own: Path, realm: dict[str, Any], seed: int, steps: int) -> Lived:
    began, partitions = time.monotonic(), 1 + seed % 3
    gateway = make_gateway(own, realm)
    history = History(seed, gateway, own / "ledgers", partitions)
    try:
        history.live(steps)
    finally:
        gateway.stop()
    done = dict(sorted(history.done.items()))
    lived_s = round(time.monotonic() - began, 1)
    return Lived(own, gateway, {"seed": seed, "partitions": partitions, "done": done, "lived_s": lived_s})


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.reconciliation.histories")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--realm", choices=("embedded", "kafka"), default="embedded")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--ledger", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
