"""Credit: how much publishers may send. Granted for completed deliveries only; the sum over all links never exceeds
the capacity (U-1).

Half of the capacity is kept for the `floor` that every link can always have: idle links that sit on their credit must
not starve a new one. The other half is shared; how much of it one holder may have says `gateway.quotas.shares`, and who
gives some back `gateway.links.idle_credit`. Pure counting.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import islice
from typing import Protocol

from gateway.amqp.incoming_link import Incoming


class Touched(Protocol):
    """A connection that has something to send."""

    def touch(self) -> None: ...


class Borrower(Protocol):
    """Who publishes on one link, with the link's credit."""

    @property
    def link(self) -> Incoming: ...

    @property
    def connection(self) -> Touched: ...

    def top_up(self) -> None: ...


class CreditPool:
    """The gateway's capacity, in deliveries, for at most `links` links; each has an equal share, or `per_link`."""

    def __init__(self, capacity: int, per_link: int, links: int, percent: Callable[[], int] = lambda: 100) -> None:
        """`percent`: `limits.share_percent`, as it is now."""
        self._per_link = per_link
        self._capacity = capacity
        self.floor = min(per_link, capacity // (2 * links))
        self._shared = capacity - self.floor * links
        self._accounts: dict[CreditAccount, None] = {}
        self.short: dict[CreditAccount, None] = {}  # those that were given less than they wanted
        self.granted = 0  # given out and not yet completed, over all links
        self.lent = 0  # the part of it above the floors
        self._percent = percent
        self.lent_to: Counter[str] = Counter()  # by holder
        self.stopped = False  # the gateway is closing: nothing is granted any more

    def open_account(self, holder: str = "", borrower: Borrower | None = None) -> CreditAccount:
        account = CreditAccount(self, holder, borrower)
        self._accounts[account] = None
        return account

    def next_accounts(self, count: int) -> list[CreditAccount]:
        """So many, in turns."""
        accounts = [*islice(self._accounts, count)]
        for account in accounts:
            self._accounts[account] = self._accounts.pop(account)
        return accounts

    def close_account(self, account: CreditAccount) -> None:
        if account in self._accounts:
            del self._accounts[account]
            self.short.pop(account, None)
            account.borrower = None
            self.change(account, -account.granted)

    @property
    def share(self) -> int:
        """What one link may hold; at least one, as long as the capacity lasts."""
        return min(self._per_link, max(1, self._capacity // max(1, len(self._accounts))))

    def room(self, account: CreditAccount) -> int:
        """How much more this link can be given."""
        percent, free = self._percent(), self._shared - self.lent
        mine = self.lent_to[account.holder] * (100 - percent)
        lendable = -((mine - percent * free) // 100)  # all but the last of it as if it were lent one by one
        return max(0, self.floor - account.granted) + max(0, min(free, lendable))

    def change(self, account: CreditAccount, count: int) -> None:
        before = account.granted
        account.granted += count
        self.granted += count
        lent = max(0, account.granted - self.floor) - max(0, before - self.floor)
        if lent:
            self.lent += lent
            self.lent_to[account.holder] += lent
            if not self.lent_to[account.holder]:
                del self.lent_to[account.holder]


class CreditAccount:
    """One link's part. `granted`: credit given and not yet completed, whether or not it was used."""

    def __init__(self, pool: CreditPool, holder: str, borrower: Borrower | None) -> None:
        """`borrower`: until the account is closed."""
        self._pool = pool
        self.holder = holder
        self.borrower = borrower
        self.seen_credit, self.seen_s = -1, 0.0  # what its link had at the last look, and since when
        self.granted = 0
        self._withheld = 0  # of it, for deliveries that have their outcome and that the publisher has to settle yet

    def top_up(self, unconfirmed: int = 0) -> int:
        """How much to grant now: nothing until half the share is free, so that flow frames stay rare. `unconfirmed`:
        deliveries that have their outcome and that the publisher has to settle yet. Those of a transaction are among
        them, whose credit came back before: they take a part of the share, and none of the pool's."""
        pool = self._pool
        share, taken = pool.share, self.granted + max(0, unconfirmed - self._withheld)
        if pool.stopped or taken > share // 2:
            return 0
        wanted = share - taken
        count = min(wanted, pool.room(self))
        if count < wanted:
            pool.short[self] = None
        else:
            pool.short.pop(self, None)
        pool.change(self, count)
        return count

    def overdrawn(self, count: int) -> None:
        """So many deliveries were sent with credit that had been taken back."""
        self._pool.change(self, count)

    def complete(self, count: int, kept: int = 0) -> None:
        """`count` deliveries have their outcome. `kept` of them have to be settled by their publisher yet: who never
        does is granted no more."""
        self._withheld += kept
        self._pool.change(self, -min(count - kept, self.granted))

    def confirm(self, unconfirmed: int) -> None:
        """The publisher has settled some, and so many are left. Those of a transaction are taken for the first."""
        count = max(0, self._withheld - unconfirmed)
        self._withheld -= count
        self.complete(count)
