"""Events that the log deleted before they had ended, because its retention is not ours to set: noticed, told, journaled
as `lost`, counted.

The note ends nothing: no consumer acknowledged these events, and reconciliation names each of them (S1). A later start
goes by the note, and does not write it again.
"""

from __future__ import annotations

import logging
from functools import partial

from native_backend.dispatch.context import RealmContext
from native_backend.journal.each_store import EachStore
from native_backend.nodes.node import Node
from native_backend.state.ack_state import AckState

_LOG = logging.getLogger(__name__)
ALARM = "events lost by retention"


def lose_below(context: RealmContext, node: Node, durable: str, state: AckState, kept: int) -> None:
    """The store begins at `kept` now: events below it that had not ended can no longer be given."""
    low = state.low
    lost = state.lose_below(kept)
    if node.store in context.counted:
        context.counted[node.store].lost(kept)
    if lost:
        context.alarms[ALARM] += lost
        _LOG.error("node %r, durable %r: %d EIDs lost by retention, below %d", node.name, durable, lost, kept)
        note = {(node.name, durable, node.store): (low, kept - 1, 0, low)}
        EachStore(context.journal, partial(state.noted_lost, kept)).note("lost", "retention", note)
