"""Where a command sends the events of a queue or durable, which of them, and which ones stay.

An event's origin is the store that the key of a dead letter names: it goes back to that very store, so that a message
group keeps its partition and a message its priority level. What annotations say is not asked: a peer may have written
them. A dead letter of a channel stays: there it would be given to every durable once more. Errors: none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from native_backend.log import event_key
from native_backend.nodes.node import Node
from native_backend.nodes.words import Operation

Why = Literal["gone", "channel", "moved", "unknown"]
"""Why an event has no origin to go back to: that node is no more (or was created anew), it is a channel, a command
moved the event, or nothing copied it: it was published here."""
Wanted = Callable[[Sequence[bytes], Sequence[bytes]], list[bool]]
"""Keys and values of events: which of them are meant."""
Selecting = Callable[[str], Wanted | None]
"""Compiles a selector; None: it is none."""

ROWS: Final = 200  # of one answer


@dataclass(frozen=True, slots=True)
class Route:
    """`goes`: the node that gets a copy of the event with that key, None where it ends without one, or why it stays.
    `several`: to more than one node, so that a full one ends nothing."""

    operation: Operation
    goes: Callable[[bytes], Node | Why | None]
    wanted: Wanted | None = None
    several: bool = False


def no_selectors(_: str) -> Wanted | None:
    return None


def purged(wanted: Wanted) -> Route:
    return Route("purge", lambda _: None, wanted)


def moved_to(target: Node, wanted: Wanted | None) -> Route:
    return Route("move", lambda _: target, wanted)


def to_origin(stores: Mapping[int, Node], wanted: Wanted | None) -> Route:
    return Route("move", lambda key: origin_of(stores, key), wanted, several=True)


def origin_of(stores: Mapping[int, Node], key: bytes) -> Node | Why:
    """`stores`: those of the realm's nodes, by their ids."""
    place = event_key.copied_from(key)
    if place is None:
        return "unknown"
    if event_key.copy_cause(key) == event_key.MOVED:
        return "moved"
    node = stores.get(place[0])
    if node is None:
        return "gone"
    return node if node.kind == "queue" else "channel"
