"""Events that a transaction has: neither outstanding at their link nor given to anybody, whether or not that lives.

From `hold` on they are the link's `held`; a commit enlists them as a settlement of the journal, a rollback lets them
go. May import: the standard library, `native_backend` below it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from native_backend.acknowledgement import remove_all
from native_backend.answers import SettleAnswer
from native_backend.dead_letters import Enclosing, dead_letter_node
from native_backend.dispatch import Dispatch
from native_backend.intervals import dense_runs
from native_backend.link import Link
from native_backend.postponing import postponed
from native_backend.services import Services
from native_backend.settlement import Settlement, Settling


def hold(link: Link, eids: list[int]) -> bool:
    """False where they are not all outstanding; in whatever order the consumer named them."""
    runs = [(first, last, 0, first) for first, last in dense_runs(sorted(eids))]
    if not remove_all(link.outstanding, runs):
        return False
    for first, last, _, _ in runs:
        link.held.add(first, last)
    return True


def unhold(dispatch: Dispatch, link: Link, eids: list[int]) -> None:
    """As outstanding as before; available again where the link has gone."""
    live = link in dispatch.links
    for first, last in dense_runs(sorted(eids)):
        if not link.held.remove(first, last):
            continue
        if live:
            link.outstanding.add(first, last)
        else:
            dispatch.state.again(first, last)


def enlist(
    services: Services, dispatch: Dispatch, link: Link, settling: Settling, eids: list[int], seqs: list[int]
) -> Settlement | None:
    """What is held, for a commit. None when it is not held."""
    assert settling.held, "a commit settles what is held"
    settlement = dispatch.take_off(link, settling, eids, seqs)
    if settlement is None:
        return None
    target = dead_letter_node(services.metadata, dispatch.node) if settling.operation == "dead-letter" else None
    if target is not None:
        enclosing = Enclosing(services, dispatch, dispatch.state, target, dispatch.node, settling.reason)
        settlement.prepare = partial(enclosing.prepare, settlement)
    elif settling.failed and dispatch.current.properties.redelivery_delay_ms:
        settlement.prepare = partial(_rest_later, services, dispatch, settlement)
    return settlement


def _rest_later(
    services: Services,
    dispatch: Dispatch,
    settlement: Settlement,
    prepared: Callable[[list[Settlement] | SettleAnswer], None],
) -> None:
    now_ms = services.clock.epoch_us() // 1000
    prepared(postponed(settlement, dispatch.current.properties, dispatch.state.failed, now_ms))
