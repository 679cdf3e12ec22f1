"""What a publisher and a consumer notice of ten hostile connections beside them, for each kind of `kinds.py`:

    python -m bench.hostile [KIND ...] [--seed N] [--seconds 8] [--rate 2000] [--realm kafka] [--record]

One gateway, with TLS, WebSocket and passwords. For each kind, in an order that the seed chooses: both alone, both
beside ten connections of it, and both one second after those have ended. Required: 0.9 of the rate that they had alone,
in and out; p99 of accept below 50 ms, also a second afterwards; the lease held at each look; `/livez` answered within a
second.
Exit 0: all of it holds; 1: not. `--record` writes results/DATE-COMMIT-hostile.json. Errors: `RuntimeError`.

Where others use the machine, p99 is theirs, too. A kind that fails beside them is measured once more, and if it fails
again, and they are still there, it is not known whether it holds: that counts as not.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple

from bench.hostile.innocent import Probes, Served, probed, served
from bench.hostile.kinds import KINDS
from bench.machine import Machine
from bench.report import keep
from gateway.config.limits import Limits
from tests.kit.patience import HANG_S
from tests.kit.processes.admin_pages import Watch
from tests.kit.processes.broker import start_broker
from tests.kit.processes.certificates import Authority
from tests.kit.processes.gateway import GatewayProcess, embedded_realm, kafka_realm, make_gateway
from tests.kit.wire.logins import write_users

COUNT: Final = 10
PART: Final = 0.9
P99_MS: Final = 50.0
LIVEZ_S: Final = 1.0
RECOVERY_S: Final = 1.0
SHORT: Final = 0.5  # of the seconds beside: alone, and afterwards
FOREIGN_CPU_MAX: Final = 0.05
HEAD: Final = ("kind", "in", "out", "p99 alone", "beside", "after 1 s", "/livez", "others", "hostile", "holds")


class Measured(NamedTuple):
    kind: str
    alone: Served
    beside: Served
    after: Served
    probes: Probes
    hostile: dict[str, int]
    foreign_cpu: float

    def broken(self) -> list[str]:
        """What is required and does not hold."""
        faults = []
        for word, alone, beside in (
            ("in", self.alone.accepted, self.beside.accepted),
            ("out", self.alone.received, self.beside.received),
        ):
            if beside < PART * alone:
                faults.append(f"{word} {beside / alone:.2f} of its rate")
        for when, service in (("beside", self.beside), ("afterwards", self.after)):
            if service.p99_ms >= P99_MS:
                faults.append(f"p99 {service.p99_ms:.0f} ms {when}")
        if self.probes.slowest_s >= LIVEZ_S or self.probes.silent or not self.probes.asked:
            faults.append(f"/livez took {self.probes.slowest_s:.1f} s, {self.probes.silent} without an answer")
        if self.probes.unheld:
            faults.append(f"the lease was not held at {self.probes.unheld} looks")
        if not self.hostile["sent"]:
            faults.append("the hostile peers sent nothing")
        return faults

    def is_doubtful(self) -> bool:
        """It does not hold, and that may be due to others."""
        return bool(self.broken()) and self.foreign_cpu > FOREIGN_CPU_MAX

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        words = {
            name: value._asdict() if isinstance(value, Served) else value for name, value in self._asdict().items()
        }
        return {**words, "probes": asdict(self.probes), "broken": self.broken()}

    def cells(self) -> tuple[str, ...]:
        counts = self.hostile
        made = f"{counts['connections']:,} connections, {counts['sent'] / 1e6:,.1f} MB"
        ratios = (self.beside.accepted / self.alone.accepted, self.beside.received / self.alone.received)
        latencies = (f"{service.p99_ms:.1f} ms" for service in (self.alone, self.beside, self.after))
        says = "; ".join(self.broken()) or "yes"
        if self.is_doubtful():
            says = f"not known, others used the machine: {says}"
        beside = (f"{self.probes.slowest_s:.2f} s", f"{self.foreign_cpu:.0%}")
        return self.kind, *(f"{ratio:.2f}" for ratio in ratios), *latencies, *beside, made, says


@contextmanager
def storming(kind: str, address: str, seed: int, into: dict[str, int]) -> Iterator[int]:
    """Hostile peers, until the end of the block, and their process; `into` gets what they say then."""
    words = [sys.executable, "-m", "bench.hostile.peers", kind, address, "--count", str(COUNT), "--seed", str(seed)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None and process.stdout.readline() == "open\n", "the hostile peers have ended"
        yield process.pid
        if process.poll() is not None:
            raise RuntimeError(f"the hostile peers have ended: {process.returncode}")
        process.send_signal(signal.SIGTERM)
        into |= json.loads(process.communicate(timeout=HANG_S)[0])
    finally:
        process.kill()
        process.communicate()


class Gate:
    """One gateway, and the kinds beside it, one after another."""

    def __init__(self, gateway: GatewayProcess, pids: list[int], seed: int, rate: int, seconds: float) -> None:
        """`pids`: of the gateway and its realm's broker."""
        self._gateway, self._seed, self._rate, self._seconds = gateway, seed, rate, seconds
        self._pids = pids
        self._watch = Watch.of(gateway)
        self._nodes = 0

    def measure(self, kind: str) -> Measured:
        scheme = KINDS[kind](Random(self._seed)).scheme
        ports = {"amqp": self._gateway.port, **self._gateway.ports}
        hostile: dict[str, int] = {}
        alone = self._served(SHORT)
        with probed(self._watch) as probes:
            with storming(kind, f"127.0.0.1:{ports[scheme]}", self._seed, hostile) as storm:
                report = Machine([*self._pids, storm]).measured(lambda: {"served": self._served()})
            time.sleep(RECOVERY_S)
            after = self._served(SHORT)
        return Measured(kind, alone, report["served"], after, probes, hostile, report["foreign_cpu"])

    def _served(self, part: float = 1.0) -> Served:
        self._nodes += 1
        return served(self._gateway, f"innocent-{self._nodes}", self._rate, self._seconds * part)


@contextmanager
def gateway_of(realm: str) -> Iterator[tuple[GatewayProcess, list[int]]]:
    """And the processes that are measured: its own, its broker's."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        pair = Authority(directory / "authority").sign("server", "/CN=localhost", "IP:127.0.0.1")
        write_users(directory / "users.yaml", insider=[])
        security = {"sasl": ["ANONYMOUS", "PLAIN"], "users": "users.yaml", "plain_without_tls": True}
        tls = {"certificate": str(pair.certificate), "key": str(pair.key)}
        limits = {"connections_per_s": Limits().connections_per_s}
        settings = {"security": security, "tls": tls, "admin": {"listen": "http://127.0.0.1:0"}, "limits": limits}
        broker = start_broker(directory / "kafka") if realm == "kafka" else None
        try:
            kept = kafka_realm(broker.bootstrap, "hostile") if broker else embedded_realm(directory)
            gateway = make_gateway(directory, kept, **settings)
            gateway.more = ["ws", "amqps"]
            gateway.start()
            yield gateway, [gateway.pid, *([broker.pid] if broker else [])]
            if gateway.stop() != 0:
                raise RuntimeError(f"the gateway did not end well:\n{gateway.log()}")
        finally:
            gateway.kill()
            if broker:
                broker.kill()


def table(samples: Sequence[Measured]) -> list[str]:
    """Lines of Markdown."""
    rows = [HEAD, ("---",) * len(HEAD), *(sample.cells() for sample in samples)]
    return [f"| {' | '.join(row)} |" for row in rows]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", metavar="KIND")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--rate", type=int, default=2_000)
    parser.add_argument("--realm", choices=("embedded", "kafka"), default="embedded")
    parser.add_argument("--record", action="store_true")
    arguments = parser.parse_args()
    if unknown := set(arguments.kinds) - set(KINDS):
        parser.error(f"no kind {', '.join(sorted(unknown))}; there are {', '.join(KINDS)}")
    kinds = arguments.kinds or [*KINDS]
    Random(arguments.seed).shuffle(kinds)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # unwinds: the gateway and its broker are stopped
    started = time.strftime("%Y-%m-%dT%H%M")
    samples: list[Measured] = []
    with gateway_of(arguments.realm) as (gateway, pids):
        gate = Gate(gateway, pids, arguments.seed, arguments.rate, arguments.seconds)
        for at, kind in enumerate(kinds):
            sys.stderr.write(f"bench.hostile: {kind}, {at + 1} of {len(kinds)}\n")
            measured = gate.measure(kind)
            if measured.is_doubtful():
                sys.stderr.write(f"bench.hostile: {kind} again: others used {measured.foreign_cpu:.0%}\n")
                measured = gate.measure(kind)
            samples.append(measured)
    lines = table(samples)
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    if arguments.record:
        result = {"command": " ".join(sys.argv[1:]), "lines": lines, "samples": [sample.record() for sample in samples]}
        sys.stdout.write(f"{keep(started, 'hostile', result)}\n")
    return 1 if any(sample.broken() for sample in samples) else 0


if __name__ == "__main__":
    sys.exit(main())
