"""Who owns the realm, and who waits: one gives out events at a time; and the bugs that would break that are seen."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from native_backend.journal.lease import Lease
from native_backend.journal.lease_records import LeaseRecords
from tests.simulation.duel import Duel
from tests.simulation.planted.bugs import Bug, Original, violations

SEEDS = range(1, 13)
BUGS: dict[str, Bug] = {}
WORDS: dict[str, str] = {}  # of the violation that each leads to


def _bug(place: Any, attribute: str, sentence: str, words: str) -> Callable[[Callable[[Original], Original]], None]:
    def plant(make: Callable[[Original], Original]) -> None:
        name = make.__name__.replace("_", " ")
        BUGS[name], WORDS[name] = Bug(name, sentence, place, attribute, make), words

    return plant


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@_bug(Lease, "held", "Who was stopped for longer than its lease goes on where it was.", "given by two")
def lease_without_end(_: Original) -> Any:
    return property(lambda lease: not lease.lost)


@_bug(Lease, "_answered", "Who asks takes the realm without waiting for the answer.", "taken from one that lives")
def asked_and_taken(_: Original) -> Original:
    def answered(self: Any, *, take: bool = True) -> None:
        self._put("ask")
        self._take()

    return answered


@_bug(Lease, "_look", "The owner reads the question and does not answer.", "taken from one that lives")
def no_answer(_: Original) -> Original:
    return lambda lease: lease._read()


@_bug(Lease, "_is_free", "Every owner is taken for dead.", "taken from one that lives")
def all_are_dead(_: Original) -> Original:
    return lambda _: True


@_bug(LeaseRecords, "_record", "What the owner holds is not noted.", "taken from one that lives")
def holds_unheard(original: Original) -> Original:
    return lambda records, offset, record: record["what"] == "hold" or original(records, offset, record)


@_bug(Lease, "release", "Who ends in order does not say so.", "was followed after")
def no_release(_: Original) -> Original:
    return lambda _: None


@_bug(Lease, "_take", "Who waits never takes what has lapsed.", "for ever")
def never_taken(original: Original) -> Original:
    return lambda lease: original(lease) if lease._records.free else None


def test_one_gives_out_events_at_a_time() -> None:
    duels = [Duel(seed) for seed in SEEDS]
    assert {seed: faults for seed, duel in zip(SEEDS, duels, strict=True) if (faults := duel.live())} == {}
    assert sum(duel.takeovers for duel in duels) > 2 * len(SEEDS)


@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_seen(name: str) -> None:
    seen = violations(BUGS[name], WORDS[name], SEEDS, lambda seed: Duel(seed).live())
    assert any(WORDS[name] in words for words in seen), f"{BUGS[name].sentence} No one noticed; seen was {seen[:3]}"
