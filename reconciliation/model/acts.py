"""What the realm did to events by itself, or by command, as the journal sums it up (`transforms.decode.acts`), on the
driver. Each needs a reason that other records show: class S2. What only a consumer can ask for needs a delivery: A2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from reconciliation.model.tally import TERMINAL
from reconciliation.model.withdrawn import Ordered

_IN_ONE_STORE = ("purge", "seek", "move", "resend")
PLACED = ("purge", "seek", "truncated", "delete")
"""Of these it counts where in the journal they stand."""
DEAD_LETTER = "dead-letter"
ENDS = (*TERMINAL, "expired", "filtered", "move")
"""What ends an event for a durable."""
WAYS = {
    "acknowledge": "acknowledged",
    DEAD_LETTER: "dead_lettered",
    "expired": "expired",
    "filtered": "filtered",
    "move": "moved",
}
"""Operation -> the column of its count in a block; what remains of the ends is discarded."""
RETURN = "return"
ASKED = (*TERMINAL, RETURN)
"""What a consumer asks for, by a delivery."""
ACTS = (*PLACED, "expired", "filtered", "evicted", "move", RETURN)
STRETCH = 4_096
"""So many EIDs make one row of a consumer's verb that belongs to no delivery."""
BY_COMMAND = {"purge": ("purge",), "seek": ("seek",), "move": ("move", "resend"), "delete": ("delete", "delete-node")}
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
    """What moved or ended durables as a whole."""
    return [
        Ordered(row.store, row.durable, row.offset, row.operation, row.first, row.last)
        for row in acts
        if row.operation in PLACED and row.offset is not None and row.first is not None and row.last is not None
    ]


def evicted_below(acts: Iterable[Act]) -> dict[int, int]:
    """Store -> below that EID everything was given up for all its durables, because it was full."""
    below: dict[int, int] = {}
    for row in acts:
        if row.operation == "evicted":
            below[row.store] = max(below.get(row.store, 0), row.highest + 1)
    return below


def places(acts: Iterable[Act], operation: str) -> list[tuple[int, str]]:
    """Store and durable of those with that operation."""
    return sorted({(row.store, row.durable) for row in acts if row.operation == operation})


def without_room(acts: Iterable[Act], limited: Mapping[int, bool]) -> list[dict[str, Any]]:
    """S2 for events that were given up in a node that has no capacity. `limited`: by store, of the nodes of which it is
    known."""
    return [
        _finding(row, row.highest, "evicted, and its node has no capacity that it could have exceeded")
        for row in acts
        if row.operation == "evicted" and not limited.get(row.store, True)
    ]


def without_delivery(acts: Iterable[Act]) -> list[dict[str, Any]]:
    """A2 for ends, and A6 for returns, that only a consumer can ask for, and that name no delivery by which it did."""
    why = "in the journal, for no delivery: no consumer can have asked for it"
    return [
        {**_finding(row, row.lowest, f"{row.operation} {why}"), "class": "A6" if row.operation == RETURN else "A2"}
        for row in acts
        if row.operation in TERMINAL or (row.operation == RETURN and row.first is not None)
    ]


def laid_to_commands(acts: Iterable[Act], since: int) -> list[Act]:
    """`since`: before that time, in microseconds since 1970, some commands were not recorded."""
    return [row for row in acts if (row.cause or "").startswith("command ") and row.at is not None and row.at >= since]


def without_command(acts: Iterable[Act], commands: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """S2 for what the journal lays to a command (see `laid_to_commands`) that is not recorded, or that asked for
    something else. `commands`: by id."""
    findings: dict[tuple[str, int, str], dict[str, Any]] = {}
    for row in acts:
        wanted, id_ = BY_COMMAND.get(row.operation), (row.cause or "").removeprefix("command ")
        if wanted is None:
            continue
        command = commands.get(id_)
        why = "and there is no such command" if command is None else _otherwise(row, wanted, command)
        if why is None:
            continue
        text = f"{row.operation} by command {id_}, {why}"
        finding = findings.setdefault((id_, row.store, row.durable), {**_finding(row, row.lowest, text), "count": 0})
        finding["count"] += row.count
    return list(findings.values())


def _otherwise(row: Act, wanted: tuple[str, ...], command: Mapping[str, Any]) -> str | None:
    """What else the command was to do; None: what the journal lays to it. A durable is deleted in every store of its
    node; all else happens in the store that a command names."""
    what, store, durable = command["what"], command.get("store", row.store), command.get("durable", row.durable)
    if what not in wanted or command.get("node", row.node) != row.node:
        return f"which was to {what} node {command.get('node')}"
    if what != "delete-node" and durable != row.durable:
        return f"which was to {what} durable {durable}"
    if what in _IN_ONE_STORE and store != row.store:
        return f"which was to {what} store {store}"
    if what == "purge" and 0 < command.get("eid", 0) <= row.highest:
        return f"which was to purge what lies below EID {command['eid']}, and EID {row.highest} ended"
    return None


def _finding(row: Act, eid: int, detail: str) -> dict[str, Any]:
    return {
        "class": "S2",
        "node": row.node or None,
        "durable": row.durable or None,
        "store": row.store,
        "eid": eid,
        "run": row.run,
        "count": row.count,
        "at": row.at,
        "detail": detail,
    }
