"""Which peer gives way when the memory that peers make the gateway hold is used up (`gateway.quotas.held_bytes`).

What goes out can be held back. A message that comes in several frames cannot, nor what is done in a transaction: where
there is no room for more of it, a link of its connection ends if that has used up its share, or the connection if
transactions have; else something of the one that holds most. A peer that reads nothing while all is used up is closed
after some seconds. Source: ADR 0119.
"""

from __future__ import annotations

from typing import Final, Protocol

from gateway.amqp.in_part import InPart
from gateway.amqp.link_ends import Link
from gateway.links.write_pressure import WritePressure
from gateway.quotas.held_bytes import HeldAccount, HeldBytes

STUCK_S: Final = 5  # seconds in which a peer has read nothing of what waits for it


class _Engine(Protocol):
    @property
    def in_part(self) -> InPart: ...


class Holder(Protocol):
    """A connection."""

    write_pressure: WritePressure
    closing: bool

    @property
    def engine(self) -> _Engine: ...

    def fault(self, fault: str, detail: str, link: Link | None = None) -> None: ...


def count_unfinished(holder: Holder) -> None:
    """After a turn of its peer's: messages that are here in part, what its transactions keep, and room for what has
    come of them."""
    account, size = holder.write_pressure.held, holder.write_pressure.unfinished
    if size == account.unfinished:
        return
    has_grown = size > account.unfinished
    account.hold(size, account.unread, account.unsettled)
    if has_grown and account.room < 0:
        _make_room(holder)


def _make_room(asking: Holder) -> None:
    account = asking.write_pressure.held
    pool = account.pool
    asking.write_pressure.look()
    words = f"limits.held_bytes_per_connection, {pool.share} octets, is used up: finish messages and transactions"
    while account.unfinished and account.held > pool.share and not asking.closing:
        _end_largest(asking, words)
    if account.room >= 0 or asking.closing:
        return
    if pool.most() != "unfinished":  # that alone is counted at once
        _look(pool)
    while account.unfinished and account.room + _leaving(pool) < 0:
        _give_way(pool, asking)


def end_stuck(pool: HeldBytes) -> None:
    """Once a second: a peer that has read nothing for some seconds is closed, the largest first, where it is for that
    that all is used up."""
    _look(pool)
    for account in pool.accounts:
        account.stuck_s = 0 if account.has_read or not account.unread else account.stuck_s + 1
        account.has_read = False
    if pool.room > 0 or pool.most() != "unread":
        return
    for account in sorted(_stuck(pool), key=lambda account: account.unread, reverse=True):
        account.owner.fault("too-much-held", _all_used_up(pool))
        if pool.room + _leaving(pool) > 0 and not pool.low:
            return


def _give_way(pool: HeldBytes, asking: Holder) -> None:
    """The one that holds most of what takes most; where there is none, the one that asks."""
    kind = pool.most()
    staying = [holding for holding in pool.accounts if not holding.owner.closing and getattr(holding, kind)]
    if kind == "unread":
        staying = _stuck(pool)
    account = max(staying, key=lambda holding: getattr(holding, kind), default=asking.write_pressure.held)
    if kind == "unfinished" or account.owner is asking:
        _end_largest(account.owner, _all_used_up(pool))
    else:
        account.owner.fault("too-much-held", _all_used_up(pool))


def _end_largest(holder: Holder, words: str) -> None:
    """The link with the largest message that is here in part; the connection, where its transactions keep more. What
    has ended without a turn of its peer is not counted any more."""
    holder.write_pressure.look()
    before = holder.engine.in_part.size
    if holder.write_pressure.in_transactions > before:
        holder.fault("too-much-held", words)
        return
    if not before:
        return
    holder.fault("too-much-unfinished", words, holder.engine.in_part.largest())
    holder.write_pressure.look()
    assert holder.engine.in_part.size < before, "what is here of a message goes with its link"


def _stuck(pool: HeldBytes) -> list[HeldAccount]:
    return [account for account in pool.accounts if account.stuck_s >= STUCK_S and not account.owner.closing]


def _leaving(pool: HeldBytes) -> int:
    """What is about to be given back, by connections that are closing."""
    return sum(account.held for account in pool.accounts if account.owner.closing)


def _look(pool: HeldBytes) -> None:
    for account in pool.accounts:
        account.owner.write_pressure.look()


def _all_used_up(pool: HeldBytes) -> str:
    return f"limits.held_bytes, {pool.bytes_max} octets of all peers, is used up: finish, settle and read what you have"
