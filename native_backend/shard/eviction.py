"""What a full node gives up has ended for every durable of the store, also for those that no consumer has opened yet.

Without a state of its own such a durable would begin where it was made, and miss the evicted events as lost by
retention when its first consumer comes.
"""

from __future__ import annotations

from collections.abc import Mapping

from native_backend.dispatch.dispatcher import Dispatcher
from native_backend.journal.recovery import States
from native_backend.journal.snapshot import Key, Recovered
from native_backend.nodes.metadata import Metadata
from native_backend.state.ack_state import AckState


def evict(
    metadata: Metadata, opened: Mapping[Key, Dispatcher], recovered: States, store: int, bound: int, journal: int
) -> list[Key]:
    """The journal holds, at `journal` or behind it, that everything below `bound` is given up. Returns which states in
    `recovered` are new: none of them has a snapshot."""
    new: list[Key] = []
    for part, durable in metadata.each_durable():
        key = part.store, durable.name
        if part.store == store and durable.start < bound and key not in opened and key not in recovered:
            recovered[key] = Recovered(AckState(durable.start), journal, closed=True)
            new.append(key)
    for key, dispatch in opened.items():
        if key[0] == store:
            dispatch.evict(bound)
    for key, entry in recovered.items():
        if key[0] == store:
            entry.state.evict(bound)
    return new
