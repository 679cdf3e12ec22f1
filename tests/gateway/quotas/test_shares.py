"""What is left free is left for those who have little, whatever others do; and no count is left behind."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from gateway.quotas.shares import SharedLimit, holder_of
from native_backend.nodes.grants import ANONYMOUS, Subject


def limit_of(maximum: int, percent: int = 75) -> SharedLimit:
    return SharedLimit("links", "links", maximum, lambda: percent)


def fill(limit: SharedLimit, holder: str) -> int:
    """All that it can take; how many it holds then."""
    while not limit.refusal(holder):
        limit.take(holder)
    return limit.held(holder)


class Holders(RuleBasedStateMachine):
    """Holders take and give back; beside the limit the plain counts."""

    @initialize(maximum=st.integers(0, 30), percent=st.integers(1, 100))
    def begin(self, maximum: int, percent: int) -> None:
        self.limit, self.maximum, self.percent = limit_of(maximum, percent), maximum, percent
        self.held: Counter[str] = Counter()

    @rule(holder=st.sampled_from("abcd"))
    def take(self, holder: str) -> None:
        if self.limit.refusal(holder):
            return
        self.limit.take(holder)
        self.held[holder] += 1

    @rule(holder=st.sampled_from("abcd"))
    def give_back(self, holder: str) -> None:
        if self.held[holder]:
            self.limit.give_back(holder)
            self.held[holder] -= 1

    @invariant()
    def sums_agree(self) -> None:
        if not hasattr(self, "limit"):
            return
        free = self.maximum - self.held.total()
        assert self.limit.used == self.held.total() <= self.maximum
        assert self.limit._held == +self.held
        assert bool(self.limit.refusal("newcomer")) == (free == 0)
        for holder in "abcd":
            held = self.held[holder]
            assert bool(self.limit.refusal(holder)) == (not held * (100 - self.percent) < free * self.percent)


TestHolders = Holders.TestCase
TestHolders.settings = settings(max_examples=50, stateful_step_count=40, deadline=None)


@pytest.mark.parametrize(("holders", "left"), [(1, 1_250), (2, 714), (3, 500), (10, 161), (40, 41)])
def test_so_much_is_left_when_all_holders_take_all_that_they_can(holders: int, left: int) -> None:
    limit, hungry = limit_of(5_000), [str(holder) for holder in range(holders)]
    while hungry := [holder for holder in hungry if not limit.refusal(holder)]:
        for holder in hungry:  # one each: none is favoured because it came first
            if not limit.refusal(holder):
                limit.take(holder)
    assert 5_000 - limit.used == left
    assert not limit.refusal("newcomer")


def test_one_that_came_first_leaves_the_next_ones_enough() -> None:
    limit = limit_of(1_000)
    assert [fill(limit, name) for name in ("first", "second", "third")] == [750, 188, 47]
    assert limit.refusal("first") == (
        "first has 750 of 1000 links, the last 15 are for others; close some, or raise limits.links"
    )


def test_many_are_taken_at_once_or_none_of_them() -> None:
    limit = limit_of(400)
    assert limit.fits("first", 300) and not limit.fits("first", 301)
    limit.take("first", 300)
    assert not limit.fits("first", 1)
    assert limit.fits("second", 75) and not limit.fits("second", 76)
    limit.take("first", -300)
    assert limit.fits("second", 300) and limit.used == 0
    alone = limit_of(400, percent=100)
    assert alone.fits("one", 400) and not alone.fits("one", 401)


def test_without_shares_one_may_have_all() -> None:
    limit = limit_of(10, percent=100)
    assert fill(limit, "one") == 10
    assert limit.refusal("other") == "all 10 links are taken; raise limits.links"


@dataclass
class Identity:
    subject: Subject
    address: str
    container: str = ""


@pytest.mark.parametrize(
    ("subject", "address", "holder"),
    [
        (Subject("ann"), "10.0.0.1", "user ann"),
        (Subject("ann"), "2001:db8::1", "user ann"),
        (ANONYMOUS, "10.0.0.1", "address 10.0.0.1"),
        (ANONYMOUS, "2001:db8::1", "address 2001:db8::"),
        (ANONYMOUS, "::ffff:10.0.0.1", "address 10.0.0.1"),
        (ANONYMOUS, "", "a peer"),
    ],
)
def test_who_holds(subject: Subject, address: str, holder: str) -> None:
    assert holder_of(Identity(subject, address)) == holder
