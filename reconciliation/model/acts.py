"""What the realm did to events by itself, or by command, as the journal sums it up (`transforms.decode.acts`), on the
driver. Each needs a reason that other records show: class S2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from reconciliation.model.withdrawn import Ordered

_PLACED = ("purge", "seek", "truncated")
BY_COMMAND = {
    "purge": ("purge",),
    "seek": ("seek",),
    "move": ("move", "resend"),
    "delete": ("delete", "delete-node"),
}
"""Operation of the journal -> what a command asks for."""


@dataclass(frozen=True, slots=True)
class Act:
    """One range of what counts by its place in the journal (`offset`), or all that has one cause. `count` is of EIDs,
    gaps included."""

    store: int
    durable: str
    operation: str
    cause: str | None
    offset: int | None
    first: int | None
    last: int | None
    node: str | None
    lowest: int
    highest: int
    count: int
    at: int | None
    run: str | None

    @classmethod
    def of(cls, row: Any) -> Act:
        return cls(**row.asDict())


def orders(acts: Iterable[Act]) -> list[Ordered]:
    """What moved durables as a whole."""
    return [
        Ordered(one.store, one.durable, one.offset, one.operation, one.first, one.last)
        for one in acts
        if one.operation in _PLACED and one.offset is not None and one.first is not None and one.last is not None
    ]


def evicted_below(acts: Iterable[Act]) -> dict[int, int]:
    """Store -> below that EID everything was given up for all its durables, because it was full."""
    below: dict[int, int] = {}
    for one in acts:
        if one.operation == "evicted":
            below[one.store] = max(below.get(one.store, 0), one.highest + 1)
    return below


def places(acts: Iterable[Act], operation: str) -> list[tuple[int, str]]:
    """Store and durable of those with that operation."""
    return sorted({(one.store, one.durable) for one in acts if one.operation == operation})


def without_room(acts: Iterable[Act], limited: Mapping[int, bool]) -> list[dict[str, Any]]:
    """S2 for events that were given up in a node that has no capacity. `limited`: by store, of the nodes of which it is
    known."""
    return [
        _finding(one, one.highest, "evicted, and its node has no capacity that it could have exceeded")
        for one in acts
        if one.operation == "evicted" and not limited.get(one.store, True)
    ]


def without_command(acts: Iterable[Act], commands: Mapping[str, Mapping[str, Any]], since: int) -> list[dict[str, Any]]:
    """S2 for what the journal lays to a command that is not recorded, or that asked for something else. `commands`: by
    id. `since`: before that time, in microseconds since 1970, some were not recorded."""
    found: dict[tuple[str, int, str], dict[str, Any]] = {}
    for one in acts:
        wanted, (word, _, id_) = BY_COMMAND.get(one.operation), (one.cause or "").partition(" ")
        if wanted is None or word != "command" or one.at is None or one.at < since:
            continue
        command = commands.get(id_)
        if command is None:
            why = "and there is no such command"
        elif command["what"] not in wanted or command.get("node", one.node) != one.node:
            why = f"which was to {command['what']} node {command.get('node')}"
        else:
            continue
        text = f"{one.operation} by command {id_}, {why}"
        finding = found.setdefault((id_, one.store, one.durable), {**_finding(one, one.lowest, text), "count": 0})
        finding["count"] += one.count
    return list(found.values())


def _finding(one: Act, eid: int, detail: str) -> dict[str, Any]:
    return {
        "class": "S2",
        "node": one.node or None,
        "durable": one.durable or None,
        "store": one.store,
        "eid": eid,
        "run": one.run,
        "count": one.count,
        "at": one.at,
        "detail": detail,
    }
