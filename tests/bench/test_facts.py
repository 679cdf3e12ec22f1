"""What `bench.facts` takes out of a gateway is there, and is out then; the arithmetic of its interval."""

from __future__ import annotations

import os
import time
from random import Random
from typing import Any

import pytest

from bench.facts.__main__ import figures, line_of
from bench.facts.cut import ALL, Cut, codes_without, install, time_statements
from bench.facts.inside import shares, whole
from bench.facts.interval import Interval, end_place, interval
from bench.facts.process import EMPTY, WHOLE, take_out
from bench.facts.recorded import FACTS, RECORDED, TIMED
from bench.facts.turns import ROWS, difference, processor_s
from gateway.links.consuming import ConsumingLink
from gateway.session.counted import counted
from gateway.session.gateway import Gateway
from mappings import load_tables
from tests.kit.realm.realm_process import RealmProcess
from tests.kit.realm.worlds import SimulatedWorld, pass_seconds
from tests.kit.wire import frames
from tests.kit.wire.conversation import settings_of

TABLES = load_tables()
MESSAGE = frames.message()
TURNS = 40  # milliseconds until what was requested of the realm is done


class Served:
    """A gateway on a real realm, and one peer of it, without a socket."""

    def __init__(self) -> None:
        self.realm = RealmProcess(SimulatedWorld("facts"), "facts").open()
        self.realm.create("q")
        self.gateway = Gateway(settings_of(TABLES, (), {}), self.realm.realm, TABLES, self.realm.clock)
        self.connection = self.gateway.connect()
        self.say(frames.AMQP_HEADER, frames.open_("peer"), frames.begin())

    def say(self, *pieces: bytes) -> None:
        self.connection.receive(b"".join(pieces))
        self.pass_time()

    def pass_time(self) -> None:
        for _ in range(TURNS):
            self.gateway.poll()
            self.gateway.touched.clear()
            self.connection.data_to_send()
            self.realm.world.pass_time()

    def live(self) -> None:
        """Messages in and out, one is given up, an attach and a login are refused; a second passes, and a minute."""
        self.gateway.turn_away("login", "login-failed", "wrong password", "user", "user", "192.0.2.1")
        self.say(frames.attach_sender("q"), frames.attach_receiver("missing", 9, name="other"))
        self.say(*(frames.transfer(number, MESSAGE) for number in range(5)))
        self.say(frames.attach_receiver("q"), frames.flow(1, 3))
        self.say(frames.disposition(0, 0, frames.state("accepted")), frames.disposition(1, 1, frames.state("rejected")))
        self.gateway.advance()
        pass_seconds(self.realm.world, 61)
        self.gateway.advance()

    def recorded(self) -> dict[str, bool]:
        """By fact: has it left anything?"""
        gateway, reading = self.gateway, counted(self.gateway, 1)
        links: list[Any] = [link.owner for link in self.connection.engine.links() if link.alive]
        now_s = gateway.clock.monotonic_s()
        stores = [figures for figures in self.realm.realm.metrics.nodes() if figures is not None]
        return {
            "counters": any(map(bool, reading.counts.values())) or any(link.facts.counts for link in links),
            "refusals": any(gateway.outcomes.recent.above(0)),
            "last": any(link.facts.last.at_us for link in links),
            "durations": any(sum(counts) for counts, _ in reading.seconds.values()),
            "ages": gateway.outcomes.seq_times.age_s(1, now_s) > 0,
            "credit": any(link.without_credit.since_s is None for link in links if not isinstance(link, ConsumingLink)),
            "depths": any(store.stored is not None for store in stores),
            "history": gateway.history.is_waiting,
        }


def recorded_without(taken: tuple[str, ...]) -> dict[str, bool]:
    """What a gateway that lives without these leaves."""
    restore = install([cut for cut in RECORDED if cut.fact in taken])
    try:
        served = Served()
        served.live()
        recorded = served.recorded()
        served.realm.close()
    finally:
        restore()
    return recorded


@pytest.mark.parametrize(
    "cut", dict.fromkeys([*RECORDED, *TIMED]), ids=lambda cut: f"{cut.where.partition(':')[2]}-{cut.statement[:20]}"
)
def test_what_is_taken_out_is_there(cut: Cut) -> None:
    [(function, code)] = codes_without([cut])
    assert len(code.co_code) < len(function.__code__.co_code)


@pytest.mark.parametrize(
    "taken", [(), FACTS, *((fact,) for fact in FACTS)], ids=lambda taken: ",".join(taken) or "none"
)
def test_what_is_taken_out_is_not_recorded(taken: tuple[str, ...]) -> None:
    assert recorded_without(taken) == {fact: fact not in taken for fact in FACTS}


@pytest.mark.parametrize(
    ("where", "statement", "words"),
    [
        ("gateway.links.consuming:ConsumingLink.gone", ALL, "there is no such function"),
        ("gateway.links.missing:ConsumingLink.pump", ALL, "there is no such function"),
        ("gateway.links.consuming:ConsumingLink", ALL, "is no plain function"),
        ("gateway.links.consuming:ConsumingLink.pump", "self.gone()", "has 0 times"),
        ("gateway.links.consuming:ConsumingLink.pump", "return False", "has 5 times"),
    ],
)
def test_what_is_not_there_is_named(where: str, statement: str, words: str) -> None:
    with pytest.raises(LookupError, match=words):
        codes_without([Cut("gone", where, statement)])


def test_names_that_are_no_facts_are_refused() -> None:
    with pytest.raises(LookupError, match="no facts: age, last-seen; there are counters, refusals"):
        take_out("counters,last-seen,age")


def test_processor_time_is_that_of_the_whole_process() -> None:
    before_s, between_s, after_s = time.process_time(), processor_s(os.getpid()), time.process_time()
    assert before_s <= between_s <= after_s


def test_the_ends_of_an_interval_are_those_of_the_tables() -> None:
    """Critical values of Wilcoxon's signed ranks, 5 % on one side, and one more: Hollander and Wolfe, table A.4."""
    assert [end_place(count) for count in (4, 5, 6, 8, 10, 12, 16, 20)] == [0, 1, 3, 6, 11, 18, 36, 61]
    assert interval([1.0, 2.0, 3.0, 4.0, 5.0]) == (1.0, 3.0, 5.0)
    assert interval([5.0, 1.0, 6.0, 3.0, 2.0, 4.0]) == (2.0, 3.5, 5.0)  # 1, 1.5, and the 2 of (1 + 3) / 2
    with pytest.raises(ValueError, match="4 values have no interval of 90 %: 5 are the least"):
        interval([1.0] * 4)


def test_nine_intervals_of_ten_hold_the_truth() -> None:
    choose, held = Random(7), 0
    for _ in range(400):
        low, middle, high = interval([choose.gauss(0.5, 2.0) for _ in range(9)])
        assert low <= middle <= high
        held += low <= 0.5 <= high
    assert 345 <= held <= 382  # of the exact 0.902 three deviations: 18


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [(-0.01, 0.02, "shown"), (0.015, 0.021, "not decided"), (0.02, 0.03, "not decided"), (0.021, 0.03, "refuted")],
)
def test_the_verdict_is_that_of_the_whole_interval(low: float, high: float, verdict: str) -> None:
    assert Interval(low, (low + high) / 2, high).verdict(0.02) == verdict


def test_a_couple_is_one_value() -> None:
    assert difference([(10.2, 10.0), (30.0, 10.0), (9.9, 10.0)]) == pytest.approx(0.02)
    samples = [
        {"turns": {row: [(10.1, 10.0)] for row in ROWS}, "costs": dict.fromkeys(ROWS, 0.01 + at / 1000)}
        for at in range(5)
    ]
    words = "in    10.00 us a message without facts: +1.20% (90 %: +1.00% to +1.40%) of 5: at most 2% shown"
    assert line_of("in", figures(samples)["in"]) == words


def test_what_the_clock_takes_is_subtracted() -> None:
    """1,000 messages in 10 ms: 2 ms of it to time 2,000 statements, 100 us for each fact and the clock beside it."""
    before = {name: [500, 7] for name in (*FACTS, EMPTY, WHOLE)}
    after = {fact: [500 + 100_000 + 250 * 400, 7 + 250] for fact in FACTS}
    after |= {EMPTY: [500 + 400 * 1000, 7 + 1000], WHOLE: [500 + 1000, 8]}
    turn = shares(before, after, 10e6, 1000)
    assert (turn["us"], turn["times"], turn["clock_ns"]) == (7.2, 2.0, 1000)
    assert turn["facts"] == dict.fromkeys(FACTS, pytest.approx(100_000 / 7_200_000, abs=1e-6))
    assert whole(turn) == pytest.approx(0.8 / 7.2, abs=1e-5)


def test_statements_are_timed() -> None:
    spent: list[tuple[str, int]] = []
    cuts = [cut for cut in TIMED if cut.fact in ("last", "credit")]
    before = [(function, function.__code__) for function, _ in codes_without(cuts)]
    clock = iter(range(0, 10_000, 5))
    try:
        time_statements(cuts, lambda: next(clock), lambda fact, length: spent.append((fact, length)))
        served = Served()
        served.live()
        served.realm.close()
    finally:
        for function, code in before:
            function.__code__ = code
    assert {*spent} == {("last", 5), ("credit", 5)}
    assert served.recorded() == dict.fromkeys(FACTS, True)
