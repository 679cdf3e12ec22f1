"""Which events `--where SELECTOR` means: those of which the selector is true, asked of the message that a consumer
gets. Blocks; raises LogError, and NodeError for a text that is no selector."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gateway.cli.dead_letters.peeked import Peeked, peeked
from gateway.links.event_to_message import EventToMessage
from native_backend.log.port import Log
from native_backend.nodes.node import NodeError
from native_backend.shard.state_reader import StoredState, unsettled_events
from transformers.selector.grammar import SelectorError
from transformers.selector.selector import selector

_EVERY = 2**62


def refuse_no_selector(where: str) -> None:
    """Before anything is asked of the realm. Empty: every event is meant."""
    try:
        if where:
            selector(where)
    except SelectorError as error:
        raise NodeError(f"--where: {error}") from None


def wanted(log: Log, stores: Sequence[StoredState], start: int, where: str) -> Iterator[Peeked]:
    """The events of these stores that are not settled and that are meant, from EID `start` on."""
    restoring = EventToMessage()
    select = selector(where).select if where else None
    for store in stores:
        for event in unsettled_events(log, store, start, _EVERY):
            letter = peeked(event, restoring, store.node.partition)
            if select is None or select([letter.message])[0]:
                yield letter
