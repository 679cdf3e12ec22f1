"""Tables reloaded over and over while messages flow through a real gateway: `python -m bench.reload [--count N]`.

A good set of tables, another good one, and bad ones, in turn; one publisher sends and reads its outcomes, idle links
stand beside it, and both admin pages are asked for all the time. First as many seconds without a reload as it takes to
compare. Afterwards the evidence is held against the tables that each record names. Prints what was seen, and ends with
1 when something was lost.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import yaml

from gateway.config.settings import load_settings
from gateway.serve.open_log import open_log
from mappings import load_tables
from native_backend.log.port import Log
from native_backend.nodes.metadata import read_tail
from tests.kit.processes.admin_pages import Watch
from tests.kit.processes.broker import start_broker
from tests.kit.processes.gateway import GatewayProcess, embedded_realm, kafka_realm, make_gateway
from tests.kit.wire.peer import Peer
from tests.kit.wire.reloading import ACCEPTED, BAD, MODIFIED, Folder, Publisher, check_evidence

DIRECTORY = Path(__file__).parents[2] / ".cache" / "bench" / "reload"
QUIET_S = 10.0
PATIENCE_S = 60.0
LINKS_PER_CONNECTION = 100


class Probed(GatewayProcess):
    """A gateway with the probe in it."""

    @property
    def seen_path(self) -> Path:
        return self.log_path.with_name("probe.jsonl")

    def launch(self) -> None:
        self.settings["listen"] = ["amqp://127.0.0.1:0"]
        self.config_path.write_text(yaml.safe_dump(self.settings, default_flow_style=None))
        command = [sys.executable, "-m", "bench.reload.probe", str(self.seen_path)]
        command += ["serve", "--config", str(self.config_path)]
        with self.log_path.open("a") as log:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)

    def tell(self) -> dict[str, dict[str, float]]:
        """What the probe has seen since it was asked last."""
        before = self.seen_path.stat().st_size if self.seen_path.exists() else 0
        os.kill(self.pid, signal.SIGUSR1)
        end = time.monotonic() + PATIENCE_S
        while not self.seen_path.exists() or self.seen_path.stat().st_size == before:
            if time.monotonic() > end:
                raise RuntimeError(f"the probe says nothing:\n{self.log()}")
            time.sleep(0.01)
        report: dict[str, dict[str, float]] = json.loads(self.seen_path.read_text().splitlines()[-1])
        return report


def idle_links(port: int, count: int) -> list[Peer]:
    peers = []
    for at in range(count):
        if at % LINKS_PER_CONNECTION == 0:
            peers.append(Peer(port, container=f"idle-{at}"))
        peers[-1].publisher("idle", handle=at % LINKS_PER_CONNECTION)
    return peers


def reload_all(process: Probed, folder: Folder, watch: Watch, count: int) -> tuple[int, int]:
    """So many at least; a change that is noticed by itself besides is one more. How many were done and refused."""
    reloads = seen = 0
    told_s = time.monotonic()
    while True:
        try:
            shown = watch.health()["reload"]
        except OSError:  # a machine that stood still: the gateway closed who took so long
            continue
        if shown["done"] + shown["refused"] > seen or not reloads:
            seen = shown["done"] + shown["refused"]
            if seen >= count:
                return shown["done"], shown["refused"]
            folder.write((MODIFIED, BAD, ACCEPTED, BAD)[reloads % 4])
            os.kill(process.pid, signal.SIGHUP)
            reloads += 1
            told_s = time.monotonic()
            if reloads % 20 == 0:
                watch.metrics()
        elif time.monotonic() - told_s > PATIENCE_S:
            raise RuntimeError(f"a reload does not end:\n{process.log()}")
        time.sleep(0.005)


def evidence(log: Log, prefix: str) -> Iterator[bytes]:
    """Tables first: which record names which is what is looked at."""
    for topic in ("tables", "outcomes"):
        for records in read_tail(log, f"{prefix}.{topic}", 0):
            yield from (value for value in records.values if value is not None)


def run(process: Probed, folder: Folder, count: int, links: int) -> None:
    first = load_tables(folder.directory)
    process.start()
    watch = Watch.of(process)
    peers = idle_links(process.port, links)
    publisher = Publisher(process.port)
    publisher.start()
    time.sleep(2)
    process.tell()
    end = time.monotonic() + QUIET_S
    while time.monotonic() < end:
        watch.health()
        time.sleep(0.025)
    quiet, before, begin = process.tell(), publisher.sent, time.monotonic()
    done, refused = reload_all(process, folder, watch, count)
    seconds, meanwhile = time.monotonic() - begin, publisher.sent - before
    loud = process.tell()
    publisher.stop()
    for peer in peers:
        peer.close()
    if process.stop() != 0:
        raise RuntimeError(process.log())
    settings = load_settings(process.config_path)
    log = open_log(settings)
    try:
        records = check_evidence(evidence(log, settings.realm.prefix), publisher, first)
    finally:
        log.close()
    print(f"{done + refused} reloads in {seconds:.0f} s, {links} idle links: {done} active, {refused} refused")
    outcomes = ", ".join(f"{number} {outcome}" for outcome, number in sorted(publisher.told.items()))
    print(f"{meanwhile} messages meanwhile; of {publisher.sent} in all each told once ({outcomes}), 0 lost")
    print(f"{sum(records.values())} outcome records of {len(records)} table sets, each as its tables say")
    for name, seen in (("without reloads", quiet), ("with reloads", loud)):
        print(f"{name}, load average {os.getloadavg()[0]:.1f}:")
        for kind, figures in seen.items():
            print(f"  {kind:18}" + "".join(f" {key} {value:<10}" for key, value in figures.items()))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.reload")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--links", type=int, default=100)
    parser.add_argument("--realm", choices=("embedded", "kafka"), default="embedded")
    arguments = parser.parse_args()
    shutil.rmtree(DIRECTORY, ignore_errors=True)
    folder = Folder(DIRECTORY / "tables-of-ours")
    broker = start_broker(DIRECTORY / "kafka") if arguments.realm == "kafka" else None
    realm = kafka_realm(broker.bootstrap, "reload") if broker else embedded_realm(DIRECTORY)
    settings = {
        "admin": {"listen": "http://127.0.0.1:0"},
        "mappings": {"dir": str(folder.directory)},
        "limits": {"in_flight": 1_000_000, "share_percent": 100},  # idle links keep their credit
    }
    made = make_gateway(DIRECTORY / "gateway", realm, **settings)
    process = Probed(made.config_path, made.log_path, settings=made.settings)
    try:
        run(process, folder, arguments.count, arguments.links)
    finally:
        process.kill()
        if broker is not None:
            broker.stop()


if __name__ == "__main__":
    main()
