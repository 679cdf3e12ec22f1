"""Credit: how much publishers may send. Granted for completed deliveries only; the sum over all links never exceeds
the capacity (U-1).

Pure counting. May import: nothing of ours.
"""

from __future__ import annotations


class CreditPool:
    """The gateway's capacity, in deliveries. Links come and go; each gets an equal share, at most `per_link`."""

    def __init__(self, capacity: int, per_link: int) -> None:
        self._capacity = capacity
        self._per_link = per_link
        self._accounts: set[CreditAccount] = set()
        self.granted = 0  # given out and not yet completed, over all links
        self.stopped = False  # the gateway is closing: nothing is granted any more

    def open_account(self) -> CreditAccount:
        account = CreditAccount(self)
        self._accounts.add(account)
        return account

    def close_account(self, account: CreditAccount) -> None:
        if account in self._accounts:
            self._accounts.remove(account)
            self.granted -= account.granted
            account.granted = 0

    @property
    def share(self) -> int:
        """What one link may hold; at least one, as long as the capacity lasts."""
        return min(self._per_link, max(1, self._capacity // max(1, len(self._accounts))))

    def room(self) -> int:
        return max(0, self._capacity - self.granted)


class CreditAccount:
    """One link's part. `granted`: credit given and not yet completed, whether or not it was used."""

    def __init__(self, pool: CreditPool) -> None:
        self._pool = pool
        self.granted = 0

    def top_up(self) -> int:
        """How much to grant now: nothing until half the share is free, so that flow frames stay rare."""
        pool = self._pool
        share = pool.share
        if pool.stopped or self.granted > share // 2:
            return 0
        count = min(share - self.granted, pool.room())
        self.granted += count
        pool.granted += count
        return count

    def complete(self, count: int) -> None:
        """`count` deliveries have their outcome."""
        count = min(count, self.granted)
        self.granted -= count
        self._pool.granted -= count
