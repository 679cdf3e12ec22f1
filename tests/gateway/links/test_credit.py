"""The sum of credit never exceeds the capacity, whatever links do, and no link starves (U-1)."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from gateway.links.credit import CreditAccount, CreditPool


class Links(RuleBasedStateMachine):
    """Links come, send, complete and go; beside the pool the plain sums."""

    @initialize(capacity=st.integers(1, 60), per_link=st.integers(1, 30), links=st.integers(1, 8))
    def begin(self, capacity: int, per_link: int, links: int) -> None:
        self.pool = CreditPool(capacity, per_link, links)
        self.capacity, self.per_link, self.links_max = capacity, per_link, links
        self.links: dict[CreditAccount, list[int]] = {}  # unused credit, deliveries under way

    def _pick(self, at: int) -> CreditAccount | None:
        return list(self.links)[at % len(self.links)] if self.links else None

    @rule()
    def attach(self) -> None:
        if len(self.links) < self.links_max:
            account = self.pool.open_account()
            self.links[account] = [account.top_up(), 0]
            assert self.links[account][0] >= self.pool.floor, "a new link starves"

    @rule(at=st.integers(0, 9), count=st.integers(1, 30))
    def send(self, at: int, count: int) -> None:
        account = self._pick(at)
        if account is not None:
            count = min(count, self.links[account][0])
            self.links[account][0] -= count
            self.links[account][1] += count

    @rule(at=st.integers(0, 9), count=st.integers(1, 30))
    def complete(self, at: int, count: int) -> None:
        account = self._pick(at)
        if account is not None:
            count = min(count, self.links[account][1])
            self.links[account][1] -= count
            account.complete(count)
            self.links[account][0] += account.top_up()

    @rule(at=st.integers(0, 9))
    def detach(self, at: int) -> None:
        account = self._pick(at)
        if account is not None:
            del self.links[account]
            self.pool.close_account(account)
            self.pool.close_account(account)  # a second time does nothing
            account.complete(5)  # what completes afterwards gives nothing back

    @invariant()
    def sums_agree(self) -> None:
        if hasattr(self, "pool"):
            held = [sum(pair) for pair in self.links.values()]
            assert sum(held) == self.pool.granted <= self.capacity
            assert max(held, default=0) <= self.per_link
            assert self.pool.lent == sum(max(0, one - self.pool.floor) for one in held)


TestLinks = Links.TestCase
TestLinks.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def test_idle_links_do_not_starve_the_next_one() -> None:
    pool = CreditPool(50_000, 5_000, 5_000)
    given = [pool.open_account().top_up() for _ in range(5_000)]
    assert given[0] == 5_000
    assert min(given) == pool.floor == 5
    assert sum(given) == pool.granted <= 50_000


def test_flows_are_rare() -> None:
    pool = CreditPool(1_000, 100, 2)
    account = pool.open_account()
    assert account.top_up() == 100
    grants = []
    for _ in range(1_000):
        account.complete(1)
        grants.append(account.top_up())
    assert sum(grants) == 1_000
    assert sum(count > 0 for count in grants) == 20


def test_a_pool_that_is_stopped_grants_nothing() -> None:
    pool = CreditPool(100, 10, 10)
    account = pool.open_account()
    account.top_up()
    pool.stopped = True
    account.complete(10)
    assert account.top_up() == 0
    assert pool.open_account().top_up() == 0
