"""`/errors`, the error board; `/errors/one`, one kind of error; `/refusals`, each refusal and fault that is kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from console.facts.errors import CLASSES, Board, changes
from console.limits import EXAMPLES_SHOWN, ROWS_SHOWN
from console.pages.view import Document, View, frame
from console.pages.words import change, iso
from gateway.verdict.kinds import GIVEN_UP, Kind, who_of

_ABOUT: Final = {
    "fatal": "A link, session or connection was closed, or an attach or a login refused. Trying again does not help.",
    "transient": "The link goes on, or may be attached again. Trying again helps when the cause has gone.",
    "indeterminate": "It is not known whether the message was stored. The publisher decides whether to send it again.",
    "other": "No peer got an error: the outcome differs from what was asked for.",
}
_SHOWN: Final = (
    "gateway", "what", "user", "container", "address", "node", "link", "direction", "durable", "condition", "class",
    "rule", "outcome", "answer", "native", "fault", "text", "remedy", "delivery", "count", "more",
)  # fmt: skip


def errors(view: View) -> Document:
    """The board: charts, what changed, a table a class, and condition by code."""
    board = Board(view.gateways, view.shown)
    rows = [_row(entry) for entry in board.rows]
    wanted = view.query.get("q", "").lower().split()
    if wanted:
        rows = [row for row in rows if all(word in _text(row) for word in wanted)]
    return frame(
        view, "errors", "Errors", "Which errors do peers receive, why, and since when?",
        q=view.query.get("q", ""),
        charts=[_chart(board, klass) for klass in CLASSES],
        watched=board.watched(),
        happened=_happened(view),
        changed=[_row(entry) for entry in changes(board.rows)],
        groups=[_group(klass, rows) for klass in CLASSES],
        matrix=_matrix(rows),
        count=sum(row["count"] for row in rows),
    )  # fmt: skip


def _group(klass: str, rows: Sequence[Document]) -> Document:
    matching = [row for row in rows if row["class"] == klass]
    return {"class": klass, "about": _ABOUT[klass], "matching": len(matching), "rows": matching[:ROWS_SHOWN]}


def _row(row: Mapping[str, Any]) -> Document:
    shown = {key: value for key, value in row.items() if key != "examples"}
    examples = [example(entry) for entry in row["examples"][:3]]
    rises = change(row["count"], row["before"])
    return {**shown, "change": rises, "first": iso(row["first_us"]), "last": iso(row["last_us"]), "examples": examples}


def _text(row: Mapping[str, Any]) -> str:
    people = " ".join(f"{peer['container']} {peer['user']} {peer['address']}" for peer in row["who"])
    nodes = " ".join(node["node"] for node in row["nodes"])
    return f"{row['class']} {row['condition']} {row['code']} {row['rule']} {nodes} {people}".lower()


def example(row: Mapping[str, Any]) -> Document:
    """An entry of /api/errors, with times for people and the command that shows its life."""
    shown = {name: row[name] for name in _SHOWN}
    shown["first"], shown["at"] = iso(row["first_us"]), iso(row["at_us"])
    shown["at_us"] = row["at_us"]
    shown["trace"] = f"realmgate trace {row['delivery']}" if row["delivery"] else ""
    return shown


def _chart(board: Board, klass: str) -> Document:
    series = board.series(lambda kind: kind.klass == klass)
    before = sum(int(row["before"] or 0) for row in board.rows if row["class"] == klass)
    return {
        "class": klass,
        "series": series,
        "count": sum(series),
        "most": max(series, default=0),
        "before": before if board.knows_before else None,
    }


def _happened(view: View) -> list[Document]:
    """What changed at the gateways in the time shown: the letters in the charts."""
    since_us = view.now_us - view.shown.minutes * 60_000_000
    return [
        {"gateway": gateway.name, "at": iso(mark.at_us), "at_us": mark.at_us, "letter": mark.letter, "what": mark.words}
        for gateway in view.shown.of(view.gateways)
        for mark in gateway.happened
        if mark.at_us >= since_us
    ]


def _matrix(rows: Sequence[Mapping[str, Any]]) -> Document:
    """Condition by code: what was counted in the time shown, the worst class of each cell."""
    counts: Counter[tuple[str, str]] = Counter()
    classes: dict[tuple[str, str], str] = {}
    for row in rows:
        if row["count"]:
            cell = row["condition"] or "no condition", row["code"] or "the table's own"
            counts[cell] += row["count"]
            classes[cell] = min(classes.get(cell, "other"), row["class"], key=CLASSES.index)
    codes = [code for code, _ in _sums(counts, 1)][:12]
    conditions = [condition for condition, _ in _sums(counts, 0)]
    return {
        "codes": codes,
        "rows": [
            {
                "condition": condition,
                "cells": [
                    {"code": code, "count": counts[condition, code], "class": classes.get((condition, code), "")}
                    for code in codes
                ],
            }
            for condition in conditions
        ],
    }


def _sums(counts: Counter[tuple[str, str]], at: int) -> list[tuple[str, int]]:
    sums: Counter[str] = Counter()
    for cell, count in counts.items():
        sums[cell[at]] += count
    return sums.most_common()


def one_error(view: View) -> Document:
    """`?class=&condition=&code=&rule=`: who meets it, when, by which rule, and what to do."""
    kind = Kind(*(view.query.get(name, "") for name in ("class", "condition", "code", "rule")))
    board = Board(view.gateways, view.shown)
    row_of_kind = next((row for row in board.rows if _is_asked(row, kind)), None)
    title = kind.condition or kind.code or kind.rule or "Error"
    if row_of_kind is None:
        question = "No gateway has counted it in its run, and none keeps an example."
        return frame(view, "errors", title, question, asked=kind.address, row=None, rule=None)
    examples = [example(entry) for entry in row_of_kind["examples"][:EXAMPLES_SHOWN]]
    row = {**_row(row_of_kind), "examples": examples, "kept": len(row_of_kind["examples"])}
    return frame(
        view, "errors", title, _ABOUT[row_of_kind["class"]], asked=kind.address, row=row,
        chart={"class": row_of_kind["class"], "series": row_of_kind["series"], "count": row_of_kind["count"]},
        watched=board.watched(), happened=_happened(view), rule=rule_of(view, row_of_kind["decided_by"]),
    )  # fmt: skip


def _is_asked(row: Mapping[str, Any], kind: Kind) -> bool:
    """A fault's condition is not part of what it is called."""
    is_same = row["class"] == kind.klass and row["code"] == kind.code and row["rule"] == kind.rule
    return is_same and (row["condition"] == kind.condition or not kind.condition)


def rule_of(view: View, name: str) -> Document | None:
    """A rule as the tables have it, `TABLE.RULE`; None: it is not known here."""
    table, _, rule = name.partition(".")
    tables, profile = view.tables, next((server.health.get("profile") for server in view.gateways if server.health), "")
    if tables is None or table not in tables.rules or not profile or not tables.digest(str(profile)):
        return None
    return next((row for row in tables.table(table, str(profile)) if row["rule"] == rule), None)


_KINDS: Final = {
    "denied": "Not allowed",
    "login": "Not let in",
    "attach": "Attach refused",
    "delivery": "Deliveries",
    "fault": "Protocol broken",
}


def refusals(view: View) -> Document:
    """`?kind=&q=`: each entry that is kept, the newest first; and who meets what, above it."""
    rows = [
        {**row, "gateway": gateway.name, "kind": kind_of_refusal(row)}
        for gateway in view.shown.of(view.gateways)
        for row in gateway.errors
        if row["what"] != GIVEN_UP
    ]
    rows.sort(key=lambda row: -(row["at_us"] or 0))
    kind, words = view.query.get("kind", ""), view.query.get("q", "").lower().split()
    wanted = [row for row in rows if kind in ("", row["kind"]) and all(word in _entry_text(row) for word in words)]
    return frame(
        view, "refusals", "Refusals", "Who was turned away, when, and what did they get?",
        kind=kind, q=view.query.get("q", ""),
        kinds=[
            {"kind": name, "title": title, "count": sum(row["kind"] == name for row in rows)}
            for name, title in _KINDS.items()
        ],
        summary=_summary(wanted),
        rows=[{**example(row), "kind": row["kind"]} for row in wanted[:ROWS_SHOWN]],
        matching=len(wanted), kept=len(rows),
    )  # fmt: skip


def kind_of_refusal(row: Mapping[str, Any]) -> str:
    if row["answer"] == "access-denied" or row["fault"] == "access-denied":
        return "denied"
    if row["what"] in ("login", "fault", "delivery"):
        return str(row["what"])
    return "attach"


def _entry_text(row: Mapping[str, Any]) -> str:
    return " ".join(str(row[name]) for name in _SHOWN if row[name]).lower()


def _summary(rows: Sequence[Mapping[str, Any]]) -> list[Document]:
    """Who met what, the latest first, at most 20."""
    groups: dict[tuple[Any, ...], list[Any]] = {}
    for row in rows:
        key = (
            row["kind"],
            row["user"],
            row["node"],
            row["fault"] or row["condition"] or row["answer"],
            row["direction"],
        )
        groups.setdefault(key, []).append(row)
    return [
        {
            "kind": _KINDS[kind], "user": user or "", "node": node or "", "error": error or "",
            "direction": direction or "", "who": who_of(alike)[:3], "count": sum(case["count"] or 0 for case in alike),
            "last": iso(alike[0]["at_us"]), "last_us": alike[0]["at_us"], "remedy": alike[0]["remedy"] or "",
            "rule": alike[0]["rule"] or "", "gateways": sorted({case["gateway"] for case in alike}),
        }
        for (kind, user, node, error, direction), alike in [*groups.items()][:20]
    ]  # fmt: skip
