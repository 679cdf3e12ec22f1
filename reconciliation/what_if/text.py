"""The answer for a terminal: the totals, what would have been different, and what cannot be decided; most first."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from reconciliation.model.window import readable

_WIDTH = 116
_RULES = 90  # characters of two rules that stand on one line
_NAME = 40  # characters of a name that are shown
_CHOICES = 4  # combinations of facts that are listed one by one
_KINDS = {"differs": "Different", "undecided": "Not decidable (what you know, say by --assume FACT=VALUE)"}
_WHATS = {
    ("delivery", "publish"): "messages published",
    ("delivery", "subscribe"): "deliveries to consumers",
    ("attach", "publish"): "refused attaches of publishers",
    ("attach", "subscribe"): "refused attaches of consumers",
    ("fault", None): "faults of peers",
    ("subscription", None): "subscriptions that ended",
    ("publisher", None): "links of publishers that ended",
}
Document = Mapping[str, Any]


def write(document: Document) -> str:
    lines = [*_head(document), "", *_totals(document)]
    number = 0
    for kind, title in _KINDS.items():
        those = [change for change in document["changes"] if change["kind"] == kind]
        lines += ["", title] if those else []
        for change in those:
            number += 1
            lines += ["", *_changed(number, change)]
    if document["not_recorded"]:
        lines += ["", "Not recorded, so not decided"]
        lines += [f"   {line}" for words in document["not_recorded"] for line in textwrap.wrap(words, _WIDTH)]
    return "\n".join([*lines, "", *textwrap.wrap(document["not_simulated"], _WIDTH)]) + "\n"


def _head(document: Document) -> Iterator[str]:
    tables, records = document["tables"], document["records"]
    yield f"Decided again by {tables['name']}, profile {tables['profile']}, digest {tables['digest']}"
    yield f"Realm: {document['realm']}. Window: {_window(document)}."
    if records["first"] is not None:
        yield f"Records: {readable(records['first'])} to {readable(records['last'])}."
    for origin in records["decided_by"]:
        profile = f"profile {origin['profile']}, " if origin["profile"] else ""
        yield f"Recorded under {profile}digest {origin['digest']}: {origin['deliveries']:,} deliveries."
    for fact, value in document["assumed"].items():
        yield f"Assumed where no record says it: {fact} is {value}."
    if records["unreadable"]:
        parts = f"{records['unreadable']:,} outcome records, or parts of them"
        yield f"{parts}, cannot be read; what they say is not decided."
    yield from (f"Not read: {words}" for words in records["unread"])


def _window(document: Document) -> str:
    if document["from"] is None and document["to"] is None:
        return "everything that is kept"
    since = readable(document["from"]) if document["from"] is not None else "the beginning"
    return f"{since} to {readable(document['to']) if document['to'] is not None else 'now'}"


def _totals(document: Document) -> Iterator[str]:
    sides = [document["deliveries"], *([document["others"]] if document["others"]["all"] else [])]
    rows = [["", "deliveries", "attaches, faults, requests"][: len(sides) + 1]]
    titles = {
        "alike": "alike",
        "alike_by_another_rule": "  by a rule of another name",
        "differently": "different",
        "undecided": "not decidable",
        "decided_by_assumption": "decided by what was assumed",
    }
    for key, title in titles.items():
        if key in ("alike", "differently", "undecided") or any(side[key] for side in sides):
            rows.append([title, *(f"{side[key]:,}" for side in sides)])
    yield from _aligned(rows, range(1, len(sides) + 1))


def _changed(number: int, change: Document) -> Iterator[str]:
    what = _WHATS.get((change["what"], change["direction"]), f"requests to {change['what']}")
    yield f"{number}. {what}: {change['count']:,}"
    if change["reason"] and not change.get("problem"):
        yield f"   {change['reason']}"
    if "old_rules" in change:
        yield from _indented(_change_rows(change))
    for gap in change["missing"]:
        yield f"   not recorded: {gap['words']} ({gap['fact']})"
    for alternative in change["alternatives"]:
        yield from _alternative(alternative)
    yield from _lines(change)


def _change_rows(change: Document) -> list[list[str]]:
    if change["problem"]:
        return [["rule", change["old_rules"]], ["why not", change["problem"]]]
    rules = f"{change['old_rules']} -> {change['new_rules']}"
    fits = len(rules) <= _RULES
    rows = [["rule", rules]] if fits else [["rule", change["old_rules"]], ["", f"-> {change['new_rules']}"]]
    for effect in change["effects"]:
        new = f"not recorded: {change['not_recorded']}" if effect["new"] is None else effect["new"]
        rows.append([effect["name"], f"{effect['old']} -> {new}"])
    if change["not_recorded"] and all(effect["new"] is not None for effect in change["effects"]):
        rows.append(["then", f"not recorded: {change['not_recorded']}"])
    return rows


def _alternative(alternative: Document) -> Iterator[str]:
    is_alike = not alternative["effects"] and not alternative["not_recorded"] and not alternative["problem"]
    yield f"   {_facts(alternative['facts'])}:{' as recorded' if is_alike else ''}"
    if not is_alike:
        yield from (f"   {row}" for row in _indented(_change_rows(alternative)))


def _facts(choices: Sequence[Mapping[str, str]]) -> str:
    """Each fact with its values, where they are all combined; else one combination after the other."""
    values = {fact: list(dict.fromkeys(choice[fact] for choice in choices)) for fact in choices[0]}
    count = 1
    for those in values.values():
        count *= len(those)
    if count == len(choices):
        return ", ".join(f"{fact} {' or '.join(those)}" for fact, those in values.items())
    words = [" ".join(f"{fact} {value}" for fact, value in choice.items()) for choice in choices[:_CHOICES]]
    more = [f"{len(choices) - _CHOICES} more"] if len(choices) > _CHOICES else []
    return "; ".join([*words, *more])


def _lines(change: Document) -> Iterator[str]:
    rows = [["count", "node", "user", "container", "look at it"]]
    for line in change["lines"]:
        names = [_name(line[key]) for key in ("node", "user", "container")]
        rows.append([f"{line['count']:,}", *names, line["command"]])
    yield from (f"   {row}" for row in _aligned(rows, (0,)))
    more = change["more"]
    if more["lines"]:
        yield f"   {more['count']:,} more, at other nodes and peers: {more['lines']:,}"


def _name(name: str | None) -> str:
    """What would break a line or a terminal is escaped."""
    shown = (name or "-") if (name or "").isprintable() else json.dumps(name)
    return shown if len(shown) <= _NAME else f"{shown[: _NAME - 3]}..."


def _indented(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    return (f"   {row}" for row in _aligned(rows))


def _aligned(rows: Sequence[Sequence[str]], numbers: Collection[int] = ()) -> Iterator[str]:
    """`numbers`: the columns that are aligned to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (
            cell.rjust(width) if at in numbers else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        yield "  ".join(cells).rstrip()
