"""Credit of links that do not use it is taken back where other links want more than there is.

A link that has credit and stands still for `IDLE_S` keeps `floor` of it, and the links that publish and were given less
than they wanted get what comes free. Nothing is taken back while there is enough. Looked at once a second, never for a
message; seconds of the monotonic clock.

A receiver may lower the credit of a link. What its sender had sent before it heard of that is no fault of it: such
deliveries are taken as if the credit had stayed (`Incoming.overdraft`), so for a moment publishers may have more under
way than the capacity. Source: AMQP 1.0 part 2, 2.6.7; ADR 0116.
"""

from __future__ import annotations

from typing import Final

from gateway.links.credit import CreditAccount, CreditPool

IDLE_S: Final = 3.0
ACCOUNTS: Final = 500  # looked at in one second, in turns: less than a millisecond


def take_back_idle_credit(pool: CreditPool, now_s: float) -> None:
    """Once a second."""
    if pool.stopped or not pool.short:
        return
    for account in pool.next_accounts(ACCOUNTS):
        _look(pool, account, now_s)
    short, pool.short = pool.short, {}
    for account in short:
        if account.borrower is not None:
            account.borrower.top_up()


def _look(pool: CreditPool, account: CreditAccount, now_s: float) -> None:
    borrower = account.borrower
    if borrower is None:
        return
    credit = borrower.link.credit
    if credit != account.seen_credit:
        account.seen_credit, account.seen_s = credit, now_s
    elif credit and now_s - account.seen_s >= IDLE_S:
        pool.short.pop(account, None)  # it does not use what it has
        count = min(credit, account.granted - max(pool.floor, 1))
        if count > 0:
            pool.change(account, -count)
            borrower.link.recall(count, account.overdrawn)
            borrower.connection.touch()
