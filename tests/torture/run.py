"""One run: a deployment, clients, a nemesis. Then all faults end, clients finish their work, and the history is
checked.

The clients work while things go wrong; in the end everything is up, every number is said until it is accepted, every
event is consumed, the gateway stops in order, and the history is compared with what the realm keeps.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from kafka.errors import KafkaTimeoutError

from tests.kit.processes.broker import Broker
from tests.kit.processes.networks import Network
from tests.torture.checks import client_ledgers
from tests.torture.checks.follower import Follower
from tests.torture.checks.guarantees import CHECKS, Violation, doubled, violations
from tests.torture.checks.observed import Observed
from tests.torture.checks.realm_reader import KafkaLog, Kept, Log, Reading, SqliteLog
from tests.torture.checks.spark import anomalies
from tests.torture.crash_points import Point
from tests.torture.history import History
from tests.torture.peers.workload import clients_of
from tests.torture.system.deployment import Deployment
from tests.torture.system.nemesis import Nemesis
from tests.torture.system.proxy import Proxy

DRAIN_S = 90.0  # without an answer, when everything is to be said and consumed
DRAIN_MAX_S = 900.0
PATIENCE = 4  # attempts at reading, of half a minute each
ANSWERS = ("told", "settled", "discharged")


@dataclass(slots=True)
class Figures:
    """What happened in one run, or in several."""

    runs: int = 0
    kills: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    points: Counter[str] = field(default_factory=Counter)
    least_in_flight: int = 10**9
    sent: int = 0
    accepted: int = 0
    given: int = 0
    ended: int = 0
    transactions: int = 0
    trimmed: int = 0
    doubled: int = 0
    stores: int = 0  # with events, in one run
    seconds: float = 0.0
    violations: list[Violation] = field(default_factory=list)

    def __add__(self, other: Figures) -> Figures:
        return Figures(
            self.runs + other.runs,
            self.kills + other.kills,
            self.faults + other.faults,
            self.points + other.points,
            min(self.least_in_flight, other.least_in_flight),
            self.sent + other.sent,
            self.accepted + other.accepted,
            self.given + other.given,
            self.ended + other.ended,
            self.transactions + other.transactions,
            self.trimmed + other.trimmed,
            self.doubled + other.doubled,
            max(self.stores, other.stores),
            self.seconds + other.seconds,
            self.violations + other.violations,
        )

    @property
    def broken(self) -> Counter[str]:
        return Counter(violation.guarantee for violation in self.violations)

    def entry(self) -> dict[str, Any]:
        """For the ledger."""
        counts = ("least_in_flight", "sent", "accepted", "given", "ended", "transactions", "trimmed", "doubled")
        seconds = round(self.seconds)
        figures = {name: getattr(self, name) for name in counts}
        happened = {"faults": dict(sorted(self.faults.items())), "deaths": dict(self.points)}
        return {**happened, "broken": dict(self.broken), **figures, "seconds": seconds}

    def line(self) -> str:
        faults = ", ".join(f"{name} {count}" for name, count in sorted(self.faults.items()))
        broken = ", ".join(f"{name} {count}" for name, count in self.broken.items()) or "no guarantee broken"
        return (
            f"{self.kills} kills ({faults}), at least {self.least_in_flight:,} in flight at each; {self.sent:,} sent, "
            f"{self.accepted:,} accepted, {self.given:,} given, {self.ended:,} ended, {self.transactions:,} "
            f"transactions, {self.stores} stores, {self.trimmed:,} trimmed, {self.doubled} doubled in doubt, "
            f"{self.seconds:.0f} s: {broken} of {len(CHECKS)}"
        )


class Run:
    """See the module's docstring; `faults` are names of the nemesis, or places to die at."""

    def __init__(self, deployment: Deployment, seed: int) -> None:
        self.deployment = deployment
        self.seed = seed
        self.random = Random(f"{seed} nemesis")
        self.history = History()
        self.clients = clients_of(deployment.front.port, self.history, seed)
        self.nemesis = Nemesis(deployment, self.clients, self.history, self.random)
        self.reading = Reading(deployment.prefix)
        self.follower: Follower | None = None

    def run(self, faults: list[str | Point], *, ask_spark: bool = False) -> Figures:
        begin = time.monotonic()
        self.deployment.open()
        self.clients.start()
        if self.deployment.retain_s:
            self.follower = Follower(self.read)
        try:
            self._begin()
            for fault in faults:
                self.nemesis.live(self.random.uniform(0.2, 0.8))
                if isinstance(fault, Point):
                    self.nemesis.do("kill at point", fault)
                else:
                    self.nemesis.do(fault)
            self._drain()
            self.clients.stop()
            findings = [] if self.deployment.stop() == 0 else [Violation("ends in order", self.deployment.log())]
            kept = self.read()  # nothing moves any more
        finally:
            self.clients.stop()
            if self.follower is not None:
                self.follower.stop()
        self.history.save(self.deployment.directory / "history.jsonl")
        observed = Observed(self.history.rows)
        findings += violations(observed, kept) + self._tracebacks()
        if ask_spark:
            findings += anomalies(self.deployment, self._ledgers(), is_doubled=doubled(observed, kept) > 0)
        if findings and self.reading.was_outrun:
            findings = [Violation("comes through", "this machine was too slow to see events before they were trimmed")]
        return self._figures(observed, kept, findings, time.monotonic() - begin)

    def _ledgers(self) -> Path:
        names = {peer.number: peer.name for peer in self.clients.peers}
        return client_ledgers.write(
            self.history.rows, names, self.history.begin_us, self.deployment.directory / "ledgers"
        )

    def _begin(self) -> None:
        """Everybody has a link: nodes have been made."""
        until = time.monotonic() + DRAIN_S
        while not all(peer.links for peer in self.clients.peers):
            self.clients.check()
            self.deployment.check()
            assert time.monotonic() < until, f"not everybody could attach in {DRAIN_S:.0f} s\n{self.deployment.log()}"
            time.sleep(0.05)

    def read(self) -> Kept:
        """What the realm keeps now, and what it has deleted in its own time."""
        for attempt in range(PATIENCE):
            try:
                return self.reading.take(self._log())
            except KafkaTimeoutError:  # a cluster that has just lost a broker may take its time
                if attempt == PATIENCE - 1:
                    raise
        raise AssertionError

    def _log(self) -> Log:
        return KafkaLog(self.deployment.bootstrap) if self.deployment.brokers else SqliteLog(self.deployment.realm_path)

    def _drain(self) -> None:
        """Until everything is said and consumed, or no one is answered any more; what is left then is a violation."""
        for peer in self.clients.peers:
            peer.is_ending = True
        at, begin = len(self.history.rows), time.monotonic()
        until = begin + DRAIN_S
        while not self._is_over():
            self.clients.check()
            self.deployment.check()
            now, end = time.monotonic(), len(self.history.rows)
            if any(self.history.rows[row][0] in ANSWERS for row in range(at, end)):
                until = min(now + DRAIN_S, begin + DRAIN_MAX_S)
            at = end
            if now > until:
                break
            time.sleep(0.1)
        assert all(peer.is_done for peer in self.clients.peers), f"not everything is accepted\n{self.deployment.log()}"

    def _is_over(self) -> bool:
        done = all(peer.is_done for peer in self.clients.peers) and not self.clients.in_flight
        return done and not self.read().left()

    def _tracebacks(self) -> list[Violation]:
        """An exception is a fault of ours, whatever it was caught by; but kafka-python shows its stack when a broker
        goes away."""
        lines = self.deployment.log_path.read_text().splitlines()
        starts = [
            at
            for at, line in enumerate(lines)
            if line.startswith("Traceback") and not (at and " ERROR kafka." in lines[at - 1])
        ]
        return [Violation("no exception", "\n".join(lines[at : at + 25])) for at in starts[:1]]

    def _figures(self, observed: Observed, kept: Kept, findings: list[Violation], seconds: float) -> Figures:
        nemesis = self.nemesis
        return Figures(
            runs=1,
            kills=nemesis.kills,
            faults=nemesis.done,
            points=nemesis.points,
            least_in_flight=nemesis.least_in_flight,
            sent=len(observed.attempts),
            accepted=sum(attempt.outcome == "accepted" for attempt in observed.attempts.values()),
            given=sum(map(len, observed.given.values())),
            ended=sum(map(len, observed.answered.values())),
            transactions=len(observed.txns),
            trimmed=sum(map(len, kept.trimmed.values())),
            doubled=doubled(observed, kept),
            stores=sum(map(bool, kept.events.values())),
            seconds=seconds,
            violations=findings,
        )


def scratch(
    directory: Path,
    seed: int,
    brokers: Sequence[Broker] = (),
    kafka_proxy: Proxy | None = None,
    network: Network | None = None,
    retain_s: int = 0,
) -> Deployment:
    """A deployment of its own in `directory`. The prefix of an embedded realm is always `um`."""
    return Deployment(directory, f"t{seed}" if brokers else "um", [*brokers], kafka_proxy, network, retain_s=retain_s)
