"""One run: a stage, a crowd, a nemesis; then rest, and judgement.

The clients work while things go wrong; in the end everything is up, every number is said until it is accepted, every
event is consumed, the gateway stops in order, and the history is compared with what the realm keeps.
May import: the standard library, `tests`.
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

from tests.broker import Broker
from tests.torture.cast import crowd_of
from tests.torture.checks import CHECKS, Breach, breaches, doubled
from tests.torture.crash_points import Point
from tests.torture.follower import Follower
from tests.torture.history import History
from tests.torture.nemesis import Nemesis
from tests.torture.proxy import Proxy
from tests.torture.realm_reader import KafkaLog, Kept, Log, Reading, SqliteLog
from tests.torture.spark import judge
from tests.torture.stage import Stage
from tests.torture.story import Story

REST_S = 90.0  # without an answer, when everything is to be said and consumed
REST_MAX_S = 900.0
PATIENCE = 4  # attempts at reading, of half a minute each
ANSWERS = ("told", "settled", "discharged")


@dataclass(slots=True)
class Figures:
    """What happened in one run, or in several."""

    runs: int = 0
    kills: int = 0
    acts: Counter[str] = field(default_factory=Counter)
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
    breaches: list[Breach] = field(default_factory=list)

    def __add__(self, other: Figures) -> Figures:
        return Figures(
            self.runs + other.runs,
            self.kills + other.kills,
            self.acts + other.acts,
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
            self.breaches + other.breaches,
        )

    @property
    def broken(self) -> Counter[str]:
        return Counter(each.promise for each in self.breaches)

    def entry(self) -> dict[str, Any]:
        """For the ledger of deaths."""
        counts = ("least_in_flight", "sent", "accepted", "given", "ended", "transactions", "trimmed", "doubled")
        seconds = round(self.seconds)
        found = {name: getattr(self, name) for name in counts}
        return {"deaths": dict(self.points), "broken": dict(self.broken), **found, "seconds": seconds}

    def line(self) -> str:
        acts = ", ".join(f"{name} {count}" for name, count in sorted(self.acts.items()))
        broken = ", ".join(f"{name} {count}" for name, count in self.broken.items()) or "no promise broken"
        return (
            f"{self.kills} kills ({acts}), at least {self.least_in_flight:,} in flight at each; {self.sent:,} sent, "
            f"{self.accepted:,} accepted, {self.given:,} given, {self.ended:,} ended, {self.transactions:,} "
            f"transactions, {self.stores} stores, {self.trimmed:,} trimmed, {self.doubled} doubled in doubt, "
            f"{self.seconds:.0f} s: {broken} of {len(CHECKS)}"
        )


class Play:
    """See the module's docstring; `acts` are names of the nemesis, or places to die at."""

    def __init__(self, stage: Stage, seed: int) -> None:
        self.stage = stage
        self.seed = seed
        self.random = Random(f"{seed} nemesis")
        self.history = History()
        self.crowd = crowd_of(stage.front.port, self.history, seed)
        self.nemesis = Nemesis(stage, self.crowd, self.history, self.random)
        self.reading = Reading(stage.prefix)
        self.follower: Follower | None = None

    def run(self, acts: list[str | Point], *, ask_spark: bool = False) -> Figures:
        begin = time.monotonic()
        self.stage.open()
        self.crowd.start()
        if self.stage.retain_s:
            self.follower = Follower(self.read)
        try:
            self._begin()
            for act in acts:
                self.nemesis.live(self.random.uniform(0.2, 0.8))
                if isinstance(act, Point):
                    self.nemesis.do("kill at point", act)
                else:
                    self.nemesis.do(act)
            self._rest()
            self.crowd.stop()
            found = [] if self.stage.stop() == 0 else [Breach("ends in order", self.stage.log())]
            kept = self.read()  # nothing moves any more
        finally:
            self.crowd.stop()
            if self.follower is not None:
                self.follower.stop()
        self.history.save(self.stage.directory / "history.jsonl")
        story = Story(self.history.rows)
        found += breaches(story, kept) + self._faults()
        if ask_spark:
            found += judge(self.stage, is_doubled=doubled(story, kept) > 0)
        if found and self.reading.was_outrun:
            found = [Breach("comes through", "this machine was too slow to see events before they were trimmed")]
        return self._figures(story, kept, found, time.monotonic() - begin)

    def _begin(self) -> None:
        """Everybody has a link: nodes have been made."""
        until = time.monotonic() + REST_S
        while not all(peer.links for peer in self.crowd.peers):
            self.crowd.check()
            self.stage.check()
            assert time.monotonic() < until, f"not everybody could attach in {REST_S:.0f} s\n{self.stage.log()}"
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
        return KafkaLog(self.stage.bootstrap) if self.stage.brokers else SqliteLog(self.stage.realm_path)

    def _rest(self) -> None:
        """Until everything is said and consumed, or nobody is answered any more; what is left then is a breach."""
        for peer in self.crowd.peers:
            peer.is_ending = True
        at, begin = len(self.history.rows), time.monotonic()
        until = begin + REST_S
        while not self._is_over():
            self.crowd.check()
            self.stage.check()
            now, end = time.monotonic(), len(self.history.rows)
            if any(self.history.rows[row][0] in ANSWERS for row in range(at, end)):
                until = min(now + REST_S, begin + REST_MAX_S)
            at = end
            if now > until:
                break
            time.sleep(0.1)
        assert all(peer.is_done for peer in self.crowd.peers), f"not everything is accepted\n{self.stage.log()}"

    def _is_over(self) -> bool:
        done = all(peer.is_done for peer in self.crowd.peers) and not self.crowd.in_flight
        return done and not self.read().left()

    def _faults(self) -> list[Breach]:
        """An exception is a fault of ours, whatever it was caught by; but kafka-python shows its stack when a broker
        goes away."""
        lines = self.stage.log_path.read_text().splitlines()
        found = [
            at
            for at, line in enumerate(lines)
            if line.startswith("Traceback") and not (at and " ERROR kafka." in lines[at - 1])
        ]
        return [Breach("no exception", "\n".join(lines[at : at + 25])) for at in found[:1]]

    def _figures(self, story: Story, kept: Kept, found: list[Breach], seconds: float) -> Figures:
        nemesis = self.nemesis
        return Figures(
            runs=1,
            kills=nemesis.kills,
            acts=nemesis.done,
            points=nemesis.points,
            least_in_flight=nemesis.least_in_flight,
            sent=len(story.attempts),
            accepted=sum(attempt.outcome == "accepted" for attempt in story.attempts.values()),
            given=sum(map(len, story.given.values())),
            ended=sum(map(len, story.answered.values())),
            transactions=len(story.txns),
            trimmed=sum(map(len, kept.trimmed.values())),
            doubled=doubled(story, kept),
            stores=sum(map(bool, kept.events.values())),
            seconds=seconds,
            breaches=found,
        )


def scratch(
    directory: Path, seed: int, brokers: Sequence[Broker] = (), kafka_proxy: Proxy | None = None, retain_s: int = 0
) -> Stage:
    """A stage of its own in `directory`. The prefix of an embedded realm is always `um`."""
    return Stage(directory, f"t{seed}" if brokers else "um", [*brokers], kafka_proxy, retain_s=retain_s)
