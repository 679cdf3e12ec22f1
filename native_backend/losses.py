"""Events that the log deleted before they had ended, because its retention is not ours to set: noticed, told, journaled
as `lost`, counted.

The note ends nothing: nobody acknowledged these events, and reconciliation names each of them (S1). May import: the
standard library, `native_backend` below it.
"""

from __future__ import annotations

import logging

from native_backend.acknowledgement import Acknowledgement
from native_backend.nodes import Node
from native_backend.services import Services
from native_backend.settlement import Settlement

_LOG = logging.getLogger(__name__)
ALARM = "events lost by retention"


class Loss:
    """Keeper of such a note."""

    def __init__(self, node: Node, durable: str) -> None:
        self._node, self._durable = node, durable

    def keys(self) -> tuple[str, str, int]:
        return self._node.name, self._durable, self._node.store

    def settled(self, settlement: Settlement) -> None:
        """It is noted."""

    def restore(self, settlement: Settlement) -> None:
        """It is not; the alarm was given all the same."""


def lose_below(services: Services, node: Node, durable: str, state: Acknowledgement, kept: int) -> None:
    """The store begins at `kept` now: what of it had not ended can be given to nobody any more."""
    low = state.low
    lost = state.lose_below(kept)
    if lost:
        services.alarms[ALARM] += lost
        _LOG.error("node %r, durable %r: %d EIDs lost by retention, below %d", node.name, durable, lost, kept)
        runs = [(low, kept - 1, 0, low)]
        services.journal.add(Settlement(Loss(node, durable), None, "lost", False, False, "retention", runs, 0, None))
