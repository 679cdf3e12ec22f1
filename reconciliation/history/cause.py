"""A finding as it is counted, compared and acknowledged: messages of one class, in one place, of which one thing is
said.

Its id stays from one reconciliation to the next: it is made of class, node, durable, store, for some classes the rule,
and of what is said with the numbers taken out; where no node is known, of the gateway's run, too. Which messages these
are is no part of the id: a finding that has grown is the same one, with more messages (`Members`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from typing import Any

from reconciliation.history.first_rows import FirstRows
from reconciliation.history.members import Members
from reconciliation.model.realm_nodes import QUEUE

EXAMPLES = 3
ID = re.compile(r"[A-Z]\d{1,2}-[0-9a-f]{10}")
_BY_RULE = ("A3", "A12")
"""One rule that was not kept to is one cause."""
_IN_WORDS = ("A3", "A12", "Q1")
"""Rows of these name the first of several deliveries, or none."""
_OF_CLIENTS = "C"
"""What these say ends with the message-id."""
_NUMBERS = re.compile(r"\d[\d,.]*(?:[, :-]+\d[\d,.]*)*")
Key = tuple[str, str, str, str, str, str, str]


@dataclass(slots=True)
class Cause:
    """`part`: the partition or level of its node, in words; empty where that has one store. Times in microseconds since
    1970; None: nothing of it has a time. `open`: so many messages no acknowledgement covers; `uncovered`: which. Of an
    earlier run it is not known which, and `examples`, the first rows, are not known either."""

    id: str
    code: str
    node: str = ""
    durable: str = ""
    store: int | None = None
    part: str = ""
    words: str = ""
    at_first: int | None = None
    at_last: int | None = None
    open: int = 0
    members: Members = field(default_factory=Members)
    uncovered: Members = field(default_factory=Members)
    _first: FirstRows = field(default_factory=lambda: FirstRows(EXAMPLES))

    @property
    def examples(self) -> list[Mapping[str, Any]]:
        return self._first.rows()

    @property
    def count(self) -> int:
        return self.members.count

    @property
    def place(self) -> str:
        """Node, partition or level, durable; empty: the realm."""
        durable = "" if self.durable == QUEUE else self.durable
        return " ".join(word for word in (self.node, self.part, durable) if word)

    def add(self, row: dict[str, Any]) -> None:
        self.members.add(row, self.code in _IN_WORDS)
        if row["at"] is not None:
            self.at_first = row["at"] if self.at_first is None else min(self.at_first, row["at"])
            self.at_last = row["at"] if self.at_last is None else max(self.at_last, row["at"])
        self._first.add(row)

    def as_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "class": self.code,
            "node": self.node,
            "durable": self.durable,
            "store": self.store,
            "part": self.part,
            "words": self.words,
            "messages": self.count,
            "open": self.open,
            "at_first": self.at_first,
            "at_last": self.at_last,
            "of": self.members.parts(),
        }

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Cause:
        """What `as_json` has written. Raises KeyError, TypeError, ValueError."""
        members = Members.of([str(part) for part in body["of"]], int(body["messages"]))
        store = None if body["store"] is None else int(body["store"])
        return cls(
            str(body["id"]), str(body["class"]), str(body["node"]), str(body["durable"]), store, str(body["part"]),
            str(body["words"]), body["at_first"], body["at_last"], int(body["open"]), members,
        )  # fmt: skip


class Causes:
    """Findings, gathered row by row."""

    def __init__(self, parts: Mapping[int, str]) -> None:
        """`parts`: by store, the words for its partition or level."""
        self._parts = parts
        self._found: dict[Key, Cause] = {}

    def add(self, row: dict[str, Any]) -> None:
        key = key_of(row)
        cause = self._found.get(key)
        if cause is None:
            part = self._parts.get(row["store"], "")
            cause = Cause(id_of(key), key[0], key[1], key[2], row["store"], part, key[6])
            self._found[key] = cause
        cause.add(row)

    def all(self) -> list[Cause]:
        """By class and place; no message of them is acknowledged yet."""
        for cause in self._found.values():
            cause.members.settle()
            cause.uncovered, cause.open = cause.members, cause.count
        return [self._found[key] for key in sorted(self._found)]


def key_of(row: dict[str, Any]) -> Key:
    code, node = row["class"], row["node"] or ""
    store = "" if row["store"] is None else str(row["store"])
    run = "" if node else row["run"] or ""
    rule = row["rule"] or "" if code in _BY_RULE else ""
    detail = row["detail"].partition(": ")[0] if code.startswith(_OF_CLIENTS) else row["detail"]
    return code, node, row["durable"] or "", store, run, rule, worded(detail)


@lru_cache(4_096)
def worded(detail: str) -> str:
    """What is said, with `#` in place of numbers and lists of numbers."""
    return _NUMBERS.sub("#", detail)


def id_of(key: Key) -> str:
    return f"{key[0]}-{blake2b(chr(0).join(key).encode(), digest_size=5).hexdigest()}"
