"""The sum of credit never exceeds the capacity, whatever links do, and no link starves (U-1). Idle links give theirs
back where others want it."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from gateway.links.credit import CreditAccount, CreditPool
from gateway.links.idle_credit import IDLE_S, take_back_idle_credit


class Borrower:
    """A publisher's link and its connection, as the pool sees them: `credit` is not used yet."""

    def __init__(self, pool: CreditPool, holder: str = "") -> None:
        self.link = self.connection = self
        self.credit = self.under_way = self.touched = 0
        self.account: CreditAccount = pool.open_account(holder, self)  # type: ignore[arg-type]
        self.top_up()

    def top_up(self) -> None:
        self.credit += self.account.top_up()

    def recall(self, count: int, overdrawn: object) -> None:
        self.credit -= count
        assert self.credit >= 0, "a sender takes a negative credit for a large one"

    def touch(self) -> None:
        self.touched += 1

    def send(self, count: int) -> None:
        self.credit -= count
        self.under_way += count

    def complete(self, count: int) -> None:
        self.under_way -= count
        self.account.complete(count)
        self.top_up()


class Links(RuleBasedStateMachine):
    """Links come, send, complete and go; beside the pool the plain sums."""

    @initialize(capacity=st.integers(1, 60), per_link=st.integers(1, 30), links=st.integers(1, 8))
    def begin(self, capacity: int, per_link: int, links: int) -> None:
        self.pool = CreditPool(capacity, per_link, links, lambda: 75)
        self.capacity, self.per_link, self.links_max = capacity, per_link, links
        self.links: list[Borrower] = []
        self.now_s = 0.0

    def _pick(self, at: int) -> Borrower | None:
        return self.links[at % len(self.links)] if self.links else None

    @rule(holder=st.sampled_from("ab"))
    def attach(self, holder: str) -> None:
        if len(self.links) < self.links_max:
            self.links.append(link := Borrower(self.pool, holder))
            assert link.credit >= self.pool.floor, "a new link starves"

    @rule(at=st.integers(0, 9), count=st.integers(1, 30))
    def send(self, at: int, count: int) -> None:
        link = self._pick(at)
        if link is not None:
            link.send(min(count, link.credit))

    @rule(at=st.integers(0, 9), count=st.integers(1, 30))
    def complete(self, at: int, count: int) -> None:
        link = self._pick(at)
        if link is not None:
            link.complete(min(count, link.under_way))

    @rule(seconds=st.sampled_from((1.0, IDLE_S)))
    def look(self, seconds: float) -> None:
        self.now_s += seconds
        take_back_idle_credit(self.pool, self.now_s)

    @rule(at=st.integers(0, 9))
    def detach(self, at: int) -> None:
        link = self._pick(at)
        if link is not None:
            self.links.remove(link)
            self.pool.close_account(link.account)
            self.pool.close_account(link.account)  # a second time does nothing
            link.account.complete(5)  # what completes afterwards gives nothing back

    @invariant()
    def sums_agree(self) -> None:
        if hasattr(self, "pool"):
            held = [link.credit + link.under_way for link in self.links]
            assert sum(held) == self.pool.granted <= self.capacity
            assert max(held, default=0) <= self.per_link
            assert self.pool.lent == sum(max(0, credit - self.pool.floor) for credit in held)
            assert self.pool.lent_to.total() == self.pool.lent
            assert not {account for account in self.pool.short if account.borrower is None}


TestLinks = Links.TestCase
TestLinks.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def test_idle_links_do_not_starve_the_next_one() -> None:
    pool = CreditPool(50_000, 5_000, 5_000)
    given = [pool.open_account().top_up() for _ in range(5_000)]
    assert given[0] == 5_000
    assert min(given) == pool.floor == 5
    assert sum(given) == pool.granted <= 50_000


def test_idle_links_give_back_what_others_want() -> None:
    """Those that publish keep theirs, and an idle one has the floor."""
    pool = CreditPool(1_000, 100, 50)
    links = [Borrower(pool, "a") for _ in range(6)]
    assert [link.credit for link in links] == [100] * 5 + [60] and pool.floor == 10
    late = [Borrower(pool, "b") for _ in range(5)]
    assert [link.credit for link in late] == [10] * 5, "nothing is left of what is shared"
    for second in range(5):
        links[0].send(1)
        for link in late:
            link.send(5)
        take_back_idle_credit(pool, float(second))
        for link in late:
            link.complete(5)
    assert [link.credit for link in links] == [95] + [10] * 5
    assert [link.credit for link in late] == [85] * 5 and pool.granted == 100 + 50 + 5 * 85
    assert all(link.touched for link in links[1:]) and not links[0].touched
    before = [link.credit for link in late]
    for second in range(5, 50):
        take_back_idle_credit(pool, float(second))
    assert [link.credit for link in late] == before and not pool.short, "where none is short of it, idle links keep it"


def test_what_a_publisher_has_to_settle_takes_its_share() -> None:
    """What it published has its credit in the pool until then; what it posted has none there, so others have theirs."""
    pool = CreditPool(1_000, 100, 2)
    account, other = pool.open_account(), pool.open_account()
    assert account.top_up() == 100
    account.complete(100, 40)  # the others are done
    assert pool.granted == 40
    assert account.top_up(unconfirmed=100_040) == 0, "of transactions, all but 40"
    assert (pool.granted, other.top_up()) == (40, 100)
    account.confirm(45)
    assert (account.granted, account.top_up(unconfirmed=45)) == (40, 55)
    account.confirm(20)
    assert (account.granted, account.top_up(unconfirmed=20)) == (75, 0)
    account.confirm(0)
    assert (account.granted, account.top_up()) == (55, 0)
    account.complete(55)
    assert account.top_up() == 100


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
