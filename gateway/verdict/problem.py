"""What needs an operator now: one thing that is wrong, with who it concerns, the rule that says so, and what to do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from gateway.verdict.answers import Row


@dataclass(slots=True)
class Problem:
    """`kind` is one word, for programs; `klass` one of the board's, or `slow`: no peer got an error. `rule`: of a
    table, or the check that found it (docs/how-to/watch-a-gateway.md). `page` explains it, at `link`. 0 us: not known.
    """

    kind: str
    klass: str
    words: str
    page: str
    link: str
    more: str = ""
    node: str = ""
    user: str = ""
    container: str = ""
    who: str = ""
    rule: str = ""
    since_us: int = 0
    last_us: int = 0
    count: int = 0
    remedy: str = ""
    gateways: list[str] = field(default_factory=list)
    loses: bool = False

    def document(self) -> dict[str, Any]:
        fields = asdict(self)
        fields["class"] = fields.pop("klass")
        return fields


def named(row: Row) -> str:
    """A peer, in words: container, user and address, as far as they are known."""
    user = f"user {row['user']}" if row["user"] else ""
    return ", ".join(filter(None, (row["container"], user, row["address"])))


def named_all(people: Iterable[Row]) -> str:
    """The first one, and how many more there are."""
    names = [*dict.fromkeys(named(peer) for peer in people)]
    return (names[0] + (f", and {len(names) - 1} more" if len(names) > 1 else "")) if names else ""
