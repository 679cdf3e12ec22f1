"""What the rows of the documented delivery-state tables say, as frames and native operations to be seen. From
`tests/kit/tables/um_rows.json` (a copy of the reference's; its ids are those of semantics reference 1.1), never from
our tables.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_FILE = Path(__file__).with_name("um_rows.json")
SEED: dict[str, dict[str, Any]] = {row["id"]: row for row in json.loads(_FILE.read_text(encoding="utf-8"))}
_VERSIONS = {"um-9.9": "um_9_9", "um-9.10": "um_9_10", "um-9.12": "um_9_12plus", "extended": "um_9_12plus"}


@dataclass(frozen=True, slots=True)
class Expected:
    """What a row says in one profile."""

    row: str
    supported: bool  # a tick; a row that gives none has one
    outcome: str  # none, accepted, rejected, released, modified
    error: str | None
    closes: bool
    native: str  # none, subscribe, publish, acknowledge, open (not stated: left to the engine)

    @property
    def state(self) -> str:
        """As `Seen.state` writes it."""
        return f"{self.outcome}:{self.error}" if self.outcome == "rejected" and self.error else self.outcome


def expected(row: str, profile: str) -> Expected:
    seed = SEED[row]
    meant = seed
    while meant["native_operation"].startswith("= ") or meant["response"]["outcome"].startswith("= "):
        reference = meant["native_operation"].removeprefix("= ").split(" ")[0]
        meant = SEED[reference]  # "= P-A6"
    response = meant["response"]
    fatal = response["error_class"] == "fatal"
    return Expected(
        row,
        seed["supported"][_VERSIONS[profile]] != "no",
        _outcome(response["outcome"]),
        response["error"],
        response["close_link"].startswith("yes") or fatal,
        _native(meant),
    )


def _outcome(text: str) -> str:
    """ "accepted (only after the ACK completed)" -> accepted."""
    if text == "source default-outcome":
        return "accepted"  # where the source names none, or this one (1.3-O)
    word = text.split(" ")[0].split("{")[0].split(";")[0]
    return word if word in ("none", "accepted", "rejected", "released", "modified") else "none"


def _native(seed: dict[str, Any]) -> str:
    text = seed["native_operation"]
    if "ACK(" in text or text == "as S-A5":
        return "acknowledge"
    if text.startswith("none stated (the default outcome decides"):
        return "acknowledge"  # "accepted => same native effect as S-A4/S-A5"
    if text.startswith("none stated"):
        return "open"
    for word, native in (("subscribe", "subscribe"), ("publish", "publish")):
        if f"native {word}" in text:
            return native
    return "none"
