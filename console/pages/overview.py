"""`/`: does anything need an operator? A verdict, what is open, and the panels; and `/find`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import urlencode

from console.facts.errors import Board
from console.facts.realm import durables, hits, letters, nodes, outcomes, retries
from console.facts.rules import profile_of
from console.pages.errors import kind_of_refusal
from console.pages.peers import link_row
from console.pages.standing import quantile_ms
from console.pages.view import Document, View, frame
from console.pages.words import change, iso
from gateway.verdict.problems import open_words
from gateway.verdict.standing import WAITS

_TOP: Final = 5
_FOUND: Final = 50
_COMMIT: Final = "realmgate_commit_seconds"


def overview(view: View) -> Document:
    shown = view.shown
    board = Board(view.gateways, shown)
    flow = outcomes(view.gateways, shown)
    return frame(
        view, "overview", "Overview", "Does anything need me?",
        verdict=verdict(view, flow), facts=_facts(view, flow),
        panels={
            "errors": [_error(row) for row in board.rows if row["count"]][:_TOP],
            "transient": _transient(view, board)[:_TOP],
            "outcomes": flow[:_TOP],
            "links": _links(view),
            "durables": _durables(view),
            "capacity": _capacity(view),
            "transactions": _transactions(view),
            "rules": _rules(view),
            "letters": letters(view.gateways, shown)[:_TOP],
            "denials": _denials(view),
            "happened": _happened(view),
        },
    )  # fmt: skip


def verdict(view: View, flow: list[Document]) -> Document:
    """One sentence: do messages flow, how many problems are open, was anything lost."""
    answering = [gateway for gateway in view.gateways if gateway.answers]
    moved = {row["direction"] for row in flow}
    if not answering:
        first = (
            "No gateway answers."
            if any(gateway.failed_us for gateway in view.gateways)
            else "No gateway was asked yet."
        )
    elif not any(gateway.serves for gateway in answering):
        waits = all(gateway.state in WAITS for gateway in answering)
        first = "No gateway serves: those that answer wait." if waits else "A gateway answers, and serves no peer."
    elif moved:
        first = "Messages flow."
    else:
        first = f"A gateway serves; nothing moved in {view.shown.minutes} minutes."
    count, lost = len(view.problems), sum(problem.loses for problem in view.problems)
    second = open_words(view.problems)
    fatal = any(problem.klass == "fatal" for problem in view.problems) or not answering
    klass = "fatal" if fatal else "transient" if count else "fine"
    return {"class": klass, "sentence": f"{first} {second}" if answering or count else first, "lost": lost}


def _facts(view: View, flow: list[Document]) -> list[Document]:
    sums = {way: sum(row["count"] for row in flow if row["direction"] == way) for way in ("in", "out")}
    figures = [
        ("In", sums["in"], "deliveries"),
        ("Out", sums["out"], "deliveries"),
        ("Connections", _sum(view, "connections"), "now"),
        ("Links", _sum(view, "links"), "now"),
        ("Unsettled", _sum(view, "unsettled_deliveries"), "with consumers"),
        ("Undecided", _sum(view, "deliveries_open"), "deliveries without an outcome, at most"),
    ]
    return [{"name": name, "value": value, "about": about} for name, value, about in figures]


def _sum(view: View, name: str) -> int | None:
    """Of the gateways that answer; None: none does."""
    values = [gateway.samples.one(f"realmgate_{name}") for gateway in view.shown.of(view.gateways) if gateway.answers]
    known = [value for value in values if value is not None]
    return int(sum(known)) if known else None


def _error(row: dict[str, Any]) -> Document:
    shown = {name: row[name] for name in ("class", "condition", "code", "rule", "count", "before", "series", "nodes")}
    return {**shown, "change": change(row["count"], row["before"]), "last": iso(row["last_us"])}


def _transient(view: View, board: Board) -> list[Document]:
    """By native code: calls to the log that were asked again in this run, those of them that passed in the end, and
    what peers were answered nevertheless."""
    by_code = {
        row["code"]: {**row, "recovered": row["in_this_run"] - row["given_up"], "told": 0}
        for row in retries(view.gateways, view.shown)
    }
    for row in board.rows:
        if row["class"] in ("transient", "indeterminate") and row["code"] and row["count"]:
            none = {"code": row["code"], "count": 0, "in_this_run": 0, "given_up": 0, "recovered": 0, "told": 0}
            by_code.setdefault(row["code"], none)["told"] += row["count"]
    return sorted(by_code.values(), key=lambda row: (-row["told"], -row["count"], -row["in_this_run"], row["code"]))


def _links(view: View) -> list[Document]:
    rows = [link_row(gateway.name, row) for gateway in view.shown.of(view.gateways) for row in gateway.links]
    rows.sort(
        key=lambda row: (-(row["oldest_unsettled_s"] or 0), -(row["without_credit_s"] or 0), -(row["unsettled"] or 0))
    )
    return rows[:_TOP]


def _durables(view: View) -> list[Document]:
    rows = durables(view.gateways, view.shown)
    return [row for row in rows if row["stored_events"] or row["hole_events"]][:_TOP]


def _capacity(view: View) -> list[Document]:
    rows = [row for row in nodes(view.gateways, view.shown) if row["used"] is not None]
    return sorted(rows, key=lambda row: -row["used"])[:_TOP]


def _transactions(view: View) -> Document:
    ended: Counter[str] = Counter()
    for gateway in view.shown.of(view.gateways):
        for (end,), count in gateway.rises.counted("transactions", view.now_us, view.shown.minutes).items():
            ended[end] += count
    shown = {"open": _sum(view, "transactions_open"), "held_bytes": _sum(view, "transaction_bytes")}
    commit = [
        {
            "gateway": gateway.name,
            "p50_ms": quantile_ms(gateway, _COMMIT, 0.5),
            "p99_ms": quantile_ms(gateway, _COMMIT, 0.99),
        }
        for gateway in view.shown.of(view.gateways)
    ]
    return {**shown, "ended": dict(ended), "commit": [row for row in commit if row["p99_ms"] is not None]}


def _rules(view: View) -> list[Document]:
    by_rule = hits(view.gateways, view.shown)
    rows: list[Document] = [{"rule": rule, **counts} for rule, counts in by_rule.items() if counts["count"]]
    return sorted(rows, key=lambda row: -int(str(row["count"])))[:_TOP]


def _denials(view: View) -> list[Document]:
    by_user: dict[tuple[str, str, str], Document] = {}
    for gateway in view.shown.of(view.gateways):
        for row in gateway.errors:
            if kind_of_refusal(row) in ("denied", "login"):
                operation = "log in" if row["what"] == "login" else row["direction"] or "use"
                key = row["user"] or "", operation, row["node"] or ""
                denial = by_user.setdefault(
                    key, {"user": key[0], "operation": operation, "node": key[2], "count": 0, "last_us": 0}
                )
                denial["count"] += row["count"] or 0
                denial["last_us"] = max(denial["last_us"], row["at_us"] or 0)
    rows = sorted(by_user.values(), key=lambda denial: -denial["last_us"])[:_TOP]
    return [{**denial, "last": iso(denial["last_us"])} for denial in rows]


def _happened(view: View) -> list[Document]:
    rows = [
        {"gateway": gateway.name, "at": iso(mark.at_us), "at_us": mark.at_us, "what": mark.words}
        for gateway in view.shown.of(view.gateways) for mark in gateway.happened
    ]  # fmt: skip
    return sorted(rows, key=lambda row: -int(str(row["at_us"])))[:_TOP]


def find(view: View) -> Document:
    """`?q=`: over what is in memory; problems first."""
    words = view.query.get("q", "").lower().split()
    rows = [
        row
        for row in _findable(view)
        if words and all(word in f"{row['text']} {row['more']}".lower() for word in words)
    ]
    is_delivery = len(words) == 1 and ":" in words[0]
    return frame(
        view, "find", "Find", "Where is this word?", q=view.query.get("q", ""), rows=rows[:_FOUND], matching=len(rows),
        trace=f"realmgate trace {view.query.get('q', '')}" if is_delivery else "",
    )  # fmt: skip


def _findable(view: View) -> Iterator[Document]:
    for problem in view.problems:
        more = " ".join(filter(None, (problem.more, problem.who, problem.rule, problem.remedy)))
        yield _hit("problem", problem.words, more, problem.link)
    for row in nodes(view.gateways, view.shown):
        yield _hit("node", row["node"], row["gateway"], f"/nodes?{urlencode({'node': row['node']})}")
    for row in durables(view.gateways, view.shown):
        yield _hit("durable", f"{row['node']} {row['durable']}", row["gateway"], "/durables")
    seen = set()
    for gateway in view.gateways:
        for row in gateway.connections:
            who = row["container"] or "", row["user"] or "", row["address"] or ""
            if who not in seen:
                seen.add(who)
                yield _hit(
                    "connection",
                    who[0] or who[2],
                    f"user {who[1]}, {who[2]}, {gateway.name}",
                    f"/connections?{urlencode({'q': who[0]})}",
                )
        for row in gateway.errors:
            parts = (row["node"], row["user"], row["container"], row["condition"], row["native"], row["rule"])
            yield _hit(
                "refusal",
                row["text"] or "",
                " ".join(filter(None, parts)),
                f"/refusals?{urlencode({'q': row['node'] or row['user'] or ''})}",
            )
    if view.tables is not None and view.tables.rules:
        profile = profile_of(next((str(server.health["profile"]) for server in view.gateways if server.health), ""))
        for name in view.tables.rules:
            for rule in view.tables.table(name, profile):
                yield _hit(
                    "rule", f"{name}.{rule['rule']}", rule["because"], f"/rules?{urlencode({'q': rule['rule']})}"
                )


def _hit(kind: str, text: str, more: str, link: str) -> Document:
    return {"kind": kind, "text": text, "more": more, "link": link}
