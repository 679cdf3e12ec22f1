"""Events that a transaction has: neither outstanding at their link nor given to another one, whether or not their link
lives.

From `reserve` on they are the link's `reserved`; a commit retires them as a settlement of the journal, a rollback lets
them go.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from native_backend.dispatch.context import RealmContext
from native_backend.dispatch.dead_letters import DeadLetterInTransaction, dead_letter_node
from native_backend.dispatch.dispatcher import Dispatcher
from native_backend.dispatch.redelivery_delay import with_redelivery_delay
from native_backend.journal.settlement import Settlement, SettlementRequest
from native_backend.nodes.words import SettleAnswer
from native_backend.state.ack_state import remove_all
from native_backend.state.consumer import Consumer
from native_backend.state.intervals import dense_runs


def reserve(dispatch: Dispatcher, link: Consumer, eids: list[int]) -> bool:
    """False where they are not all outstanding; in whatever order the consumer named them."""
    runs = [(first, last, 0, first) for first, last in dense_runs(sorted(eids))]
    if not remove_all(link.outstanding, runs):
        return False
    for first, last, _, _ in runs:
        link.reserved.add(first, last)
    dispatch.away += len(eids)
    return True


def unreserve(dispatch: Dispatcher, link: Consumer, eids: list[int]) -> None:
    """As outstanding as before; available again where the link has gone."""
    live = link in dispatch.links
    for first, last in dense_runs(sorted(eids)):
        if not link.reserved.remove(first, last):
            continue
        dispatch.away -= last - first + 1
        if live:
            link.outstanding.add(first, last)
        else:
            dispatch.state.requeue(first, last)


def retire(
    context: RealmContext,
    dispatch: Dispatcher,
    link: Consumer,
    settling: SettlementRequest,
    eids: list[int],
    seqs: list[int],
) -> Settlement | None:
    """What is held, for a commit. None when it is not held."""
    assert settling.reserved, "a commit settles what is held"
    settlement = dispatch.take_off(link, settling, eids, seqs)
    if settlement is None:
        return None
    target = dead_letter_node(context.metadata, dispatch.node) if settling.operation == "dead-letter" else None
    if target is not None:
        why = settling.reason, settling.detail
        enclosing = DeadLetterInTransaction(context, dispatch, dispatch.state, target, dispatch.node, *why)
        settlement.prepare = partial(enclosing.prepare, settlement)
    elif settling.failed and dispatch.current.properties.redelivery_delay_ms:
        settlement.prepare = partial(_rest_later, context, dispatch, settlement)
    return settlement


def _rest_later(
    context: RealmContext,
    dispatch: Dispatcher,
    settlement: Settlement,
    prepared: Callable[[list[Settlement] | SettleAnswer], None],
) -> None:
    now_ms = context.clock.epoch_us() // 1000
    prepared(with_redelivery_delay(settlement, dispatch.current.properties, dispatch.state.failed, now_ms))
