"""`/rules`: the tables in force with inheritance resolved, what each rule decided, and `explain` on chosen facts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from console.facts.realm import before_of, hits
from console.facts.rules import Tables, profile_of
from console.pages.view import Document, View, frame
from mappings.language.vocabulary import PROFILES


def rules(view: View) -> Document:
    """`?profile=&hit=hit|never&q=` and, for the form, `table=&node=&AXIS=VALUE`."""
    tables = view.tables
    title, question = "Rules", "Which rules are in force, and which decide?"
    if tables is None or not tables.rules:
        problems = ["the tables are being read; ask again in a moment"] if tables is None else tables.problems
        return frame(view, "rules", title, question, loaded=False, problems=problems, groups=[], explain=None)
    profile = profile_of(view.query.get("profile") or _in_force(view))
    counted = hits(view.gateways, view.shown)
    groups = [_group(tables, name, profile, counted, view) for name in tables.rules]
    every = [row for group in groups for row in group["all"]]
    return frame(
        view, "rules", title, question, loaded=True, problems=[], profile=profile, profiles=[*PROFILES],
        q=view.query.get("q", ""), hit=view.query.get("hit", ""),
        in_force=_digests(view, tables),
        directory=str(tables.directory) if tables.directory else "the shipped tables",
        counts={"rules": len(every), "hit": sum(bool(row["in_this_run"]) for row in every)},
        most=sorted((row for row in every if row["count"]), key=lambda row: -row["count"])[:10],
        groups=[{**group, "all": len(group["all"])} for group in groups],
        unknown=sorted(set(counted) - {f"{row['table']}.{row['rule']}" for row in every} - {""}),
        explain=_explain(tables, profile, view),
    )  # fmt: skip


def _in_force(view: View) -> str:
    return next((str(gateway.health["profile"]) for gateway in view.gateways if gateway.health.get("profile")), "")


def _digests(view: View, tables: Tables) -> list[Document]:
    """Of each gateway, and whether what is shown here is what it goes by."""
    digests = []
    for gateway in view.gateways:
        digest, profile = str(gateway.health.get("digest") or ""), str(gateway.health.get("profile") or "")
        reload = gateway.health.get("reload") or {}
        digests.append({
            "gateway": gateway.name, "digest": digest, "profile": profile,
            "is_shown": bool(digest) and digest == tables.digest(profile),
            "refused": reload.get("problems") or [],
        })  # fmt: skip
    return digests


def _group(
    tables: Tables, name: str, profile: str, counted: Mapping[str, Mapping[str, int | None]], view: View
) -> Document:
    none = {"count": 0, "before": before_of(view.gateways, view.shown), "in_this_run": 0, "errors": 0}
    every = [{**rule, **counted.get(f"{name}.{rule['rule']}", none)} for rule in tables.table(name, profile)]
    words, hit = view.query.get("q", "").lower().split(), view.query.get("hit", "")
    rows = [row for row in every if _is_wanted(row, words, hit)]
    is_chosen = name == view.query.get("open", "") or (bool(words or hit) and bool(rows))
    return {
        "table": name, "rows": rows, "all": every, "is_open": is_chosen,
        "hit": sum(bool(row["in_this_run"]) for row in every), "errors": sum(row["errors"] for row in every),
    }  # fmt: skip


def _is_wanted(row: Mapping[str, Any], words: list[str], hit: str) -> bool:
    if hit in ("hit", "never") and bool(row["in_this_run"] or row["errors"]) != (hit == "hit"):
        return False
    text = f"{row['table']}.{row['rule']} {row['when']} {row['then']} {row['condition']} {row['class']}".lower()
    return all(word in text for word in words)


def _explain(tables: Tables, profile: str, view: View) -> Document:
    """The form as it was filled in, and what it leads to."""
    query = view.query
    table = query.get("table", "")
    table = table if table in tables.rules else next(iter(tables.rules))
    axes = {axis: [*values] for axis, values in tables.axes(table).items()}
    facts = {axis: query[axis] for axis, values in axes.items() if query.get(axis) in values}
    node = query.get("node", "")[:200]
    is_asked = query.get("table", "") == table
    return {
        "table": table, "tables": [*tables.rules], "axes": axes, "facts": facts, "node": node, "asked": is_asked,
        "lines": tables.explained(table, profile, node, facts) if is_asked else [],
        "command": " ".join(
            ["realmgate mappings explain", table, *(f"{axis}={value}" for axis, value in facts.items()),
             *([f"node={node}"] if node else []), f"--profile {profile}"]
        ),
    }  # fmt: skip
