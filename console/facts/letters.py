"""Dead letters as `realmgate queue peek --json --sections` prints them, read into rows of known fields; and which nodes
get dead letters, as `realmgate node list --json` says. Texts are cut and escaped (`answers.text`).

Errors: `WrongAnswer`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from console.limits import BODY, COMMANDS_SHOWN, LETTERS_SHOWN, SECTION_ENTRIES
from gateway.verdict.answers import Row, number, text
from gateway.verdict.limits import TEXT
from gateway.verdict.samples import WrongAnswer

_LETTER: Final = ("cause", "condition", "reason", "node", "durable", "time")
_NUMBERS: Final = ("eid", "attempts", "age_s")
_SECTIONS: Final = ("header", "properties", "application_properties")


@dataclass(frozen=True, slots=True)
class Asked:
    """Which letters: of that node (empty: the first that has some), from an EID of a partition on."""

    node: str = ""
    where: str = ""
    partition: int = 0
    eid: int = 0


@dataclass(frozen=True, slots=True)
class Stored:
    """What a realm was found to hold. `can_read`: the console knows its configuration. `problem`: why it could not be
    read, or not be shown to that user. `at_us` 0: it was not read."""

    can_read: bool = False
    at_us: int = 0
    problem: str = ""
    asked: Asked = Asked()
    nodes: Sequence[Row] = ()
    rows: Sequence[Row] = ()
    more: bool = False
    commands: Sequence[Row] = ()
    """Who changed what, the latest first."""

    @property
    def next(self) -> int | None:
        """The EID from which the next page goes on."""
        return self.rows[-1]["eid"] + 1 if self.more and self.rows else None


NOT_READ: Final = Stored()


def asked_of(query: Mapping[str, str]) -> Asked:
    return Asked(
        query.get("node", "")[:500], query.get("where", "")[:1_000], _whole(query, "partition"), _whole(query, "eid")
    )


def _whole(query: Mapping[str, str], name: str) -> int:
    written = query.get(name, "")
    return int(written) if written.isascii() and written.isdigit() and len(written) < 18 else 0


def read_dead_nodes(body: bytes) -> list[Row]:
    """The nodes that others name as theirs for dead letters, the fullest first. Raises WrongAnswer."""
    by_name = {str(entry.get("name")): entry for entry in _list(body) if isinstance(entry, dict)}
    given_up = Counter[str]()
    origins: dict[str, list[str]] = {}
    for name, node in by_name.items():
        properties = node.get("properties")
        dead = properties.get("dead_letter") if isinstance(properties, dict) else None
        if isinstance(dead, str) and dead in by_name:
            given_up[dead] += 1
            origins.setdefault(dead, []).append(text(name) or "")
    rows = [
        {
            "node": name, "messages": number(by_name[name].get("messages")), "of": sorted(origins[name])[:20],
            "partitions": int(number(by_name[name].get("partitions")) or 1),
        }
        for name in given_up
    ]  # fmt: skip
    return sorted(rows, key=lambda row: (-(row["messages"] or 0), row["node"]))


def read_letters(body: bytes) -> tuple[list[Row], bool]:
    """One row a message; what is no dead letter has no cause. True: there are more. Raises WrongAnswer."""
    rows = [_row(entry) for entry in _list(body) if isinstance(entry, dict)]
    return rows[:LETTERS_SHOWN], len(rows) > LETTERS_SHOWN


def read_audit(body: bytes) -> list[Row]:
    """As `realmgate audit --json` prints it, the latest first. Raises WrongAnswer."""
    names = ("at", "who", "why", "what", "change", "node", "durable", "where", "to", "answer", "detail")
    rows = [
        {name: text(command.get(name)) or "" for name in names} | {"count": number(command.get("count"))}
        for command in _list(body)
        if isinstance(command, dict)
    ]
    return rows[: -COMMANDS_SHOWN - 1 : -1]


def _list(body: bytes) -> list[Any]:
    try:
        items = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise WrongAnswer(f"the command's answer is no JSON: {error}") from None
    if not isinstance(items, list):
        raise WrongAnswer("the command's answer is no list")
    return items


def _row(entry: Mapping[str, Any]) -> Row:
    letter = entry.get("dead_letter")
    is_letter = isinstance(letter, dict)
    fields: Mapping[str, Any] = letter if isinstance(letter, dict) else {}
    sections = entry.get("sections")
    return {
        "eid": int(number(entry.get("eid")) or 0),
        "partition": int(number(entry.get("partition")) or 0),
        "stored": text(entry.get("stored")) or "",
        "failed": number(entry.get("failed")),
        "octets": number(entry.get("octets")),
        "body": text(entry.get("body")) or "",
        "is_letter": is_letter,
        **{name: text(fields.get(name)) or "" for name in _LETTER},
        **{f"origin_{name}" if name == "eid" else name: number(fields.get(name)) for name in _NUMBERS},
        "info": text(orjson.dumps(fields["info"]).decode()) if fields.get("info") else "",
        "sections": _sections(sections if isinstance(sections, dict) else {}),
    }


def _sections(sections: Mapping[str, Any]) -> dict[str, Any]:
    """Names and texts; the body is one text."""
    shown: dict[str, Any] = {}
    for name in _SECTIONS:
        inner = sections.get(name)
        if isinstance(inner, dict):
            pairs = [*inner.items()][:SECTION_ENTRIES]
            shown[name] = {text(key) or "": _word(value) for key, value in pairs}
    body = sections.get("body")
    parts = [text(body[at : at + TEXT]) for at in range(0, BODY, TEXT)] if isinstance(body, str) else []
    shown["body"] = "".join(part or "" for part in parts)
    return shown


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return (text(value) or "") if isinstance(value, str) else str(number(value))


def causes(rows: Sequence[Row]) -> list[Row]:
    """Letters of one page by cause, origin, condition and reason; numbers and quoted words of a reason are folded."""
    by_cause: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        if row["is_letter"]:
            key = row["cause"], row["node"], row["condition"], folded(row["reason"])
            by_cause.setdefault(key, []).append(row)
    return sorted(
        (
            {
                "cause": cause, "origin": node, "condition": condition, "reason": reason, "count": len(alike),
                "oldest_s": max(letter["age_s"] or 0 for letter in alike),
            }
            for (cause, node, condition, reason), alike in by_cause.items()
        ),
        key=lambda row: -int(str(row["count"])),
    )  # fmt: skip


def folded(reason: str) -> str:
    """So that 41 reasons that differ in a number are one line."""
    words, quote = [], ""
    for word in reason.split():
        if quote or word[0] in "'\"":
            is_end = word.endswith(quote or word[0]) and (bool(quote) or len(word) > 1)
            if not quote:
                words.append("'...'")
            quote = "" if is_end else quote or word[0]
            continue
        words.append("N" if any(char.isdigit() for char in word) else word)
    return " ".join(words)
