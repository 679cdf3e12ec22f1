"""Credit: how much publishers may send. Granted for completed deliveries only; the sum over all links never exceeds
the capacity (U-1).

Half of the capacity is kept for the `floor` that every link can always have: idle links that sit on their credit must
not starve a new one. The other half is shared; how much of it one holder may have says `gateway.links.shares`. Pure
counting.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable


class CreditPool:
    """The gateway's capacity, in deliveries, for at most `links` links; each has an equal share, or `per_link`."""

    def __init__(self, capacity: int, per_link: int, links: int, percent: Callable[[], int] = lambda: 100) -> None:
        """`percent`: `limits.share_percent`, as it is now."""
        self._per_link = per_link
        self._capacity = capacity
        self.floor = min(per_link, capacity // (2 * links))
        self._shared = capacity - self.floor * links
        self._accounts: set[CreditAccount] = set()
        self.granted = 0  # given out and not yet completed, over all links
        self.lent = 0  # the part of it above the floors
        self._percent = percent
        self._lent_to: Counter[str] = Counter()  # by holder
        self.stopped = False  # the gateway is closing: nothing is granted any more

    def open_account(self, holder: str = "") -> CreditAccount:
        account = CreditAccount(self, holder)
        self._accounts.add(account)
        return account

    def close_account(self, account: CreditAccount) -> None:
        if account in self._accounts:
            self._accounts.remove(account)
            self.change(account, -account.granted)

    @property
    def share(self) -> int:
        """What one link may hold; at least one, as long as the capacity lasts."""
        return min(self._per_link, max(1, self._capacity // max(1, len(self._accounts))))

    def room(self, account: CreditAccount) -> int:
        """How much more this link can be given."""
        percent, free = self._percent(), self._shared - self.lent
        mine = self._lent_to[account.holder] * (100 - percent)
        lendable = -((mine - percent * free) // 100)  # all but the last of it as if it were lent one by one
        return max(0, self.floor - account.granted) + max(0, min(free, lendable))

    def change(self, account: CreditAccount, count: int) -> None:
        before = account.granted
        account.granted += count
        self.granted += count
        lent = max(0, account.granted - self.floor) - max(0, before - self.floor)
        if lent:
            self.lent += lent
            self._lent_to[account.holder] += lent
            if not self._lent_to[account.holder]:
                del self._lent_to[account.holder]


class CreditAccount:
    """One link's part. `granted`: credit given and not yet completed, whether or not it was used."""

    def __init__(self, pool: CreditPool, holder: str = "") -> None:
        self._pool = pool
        self.holder = holder
        self.granted = 0
        self._withheld = 0  # of it, for deliveries that have their outcome and that the publisher has to settle yet

    def top_up(self) -> int:
        """How much to grant now: nothing until half the share is free, so that flow frames stay rare."""
        pool = self._pool
        share = pool.share
        if pool.stopped or self.granted > share // 2:
            return 0
        count = min(share - self.granted, pool.room(self))
        pool.change(self, count)
        return count

    def complete(self, count: int) -> None:
        """`count` deliveries are done."""
        self._pool.change(self, -min(count, self.granted))

    def withhold(self, count: int) -> None:
        """`count` deliveries have their outcome, and are kept until their publisher settles them: who never does is
        granted no more."""
        self._withheld += count

    def confirm(self, count: int) -> None:
        """The publisher has settled so many. Those of a transaction are among them, whose credit came back before."""
        count = min(count, self._withheld)
        self._withheld -= count
        self.complete(count)
