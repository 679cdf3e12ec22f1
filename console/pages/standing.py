"""`/reconciliation` and `/gateways`: what was proven last, and how each gateway is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from console.facts.gateway import Gateway
from console.pages.view import Document, View, frame, gateway_row
from console.pages.words import iso
from gateway.verdict.reports import Report
from gateway.verdict.samples import quantile_s


def reconciliation(view: View) -> Document:
    rows = [_report(view, report) for report in view.reports]
    return frame(
        view, "reconciliation", "Reconciliation", "Does the log hold what peers were answered?",
        has_reports=view.has_reports, last=rows[0] if rows else None, runs=rows,
    )  # fmt: skip


def _report(view: View, report: Report) -> Document:
    return {
        "name": report.name,
        "directory": str(report.directory),
        "problem": report.problem,
        "verdict": report.verdict,
        "sentence": report.sentence,
        "at": iso(report.at_us),
        "at_us": report.at_us,
        "age_s": view.age_s(report.at_us),
        "window": report.window,
        "complete": report.complete,
        "classes": report.classes,
        "acknowledged": report.acknowledged,
        "entries": report.entries,
        "since": report.since,
        "difference": report.difference,
        "gateway_runs": report.runs,
        "page": f"/reconciliation/report/{report.name}" if report.has_page else "",
    }


def gateways(view: View) -> Document:
    rows = [_gateway(view, server) for server in view.gateways]
    happened = [
        {"gateway": gateway.name, "at": iso(mark.at_us), "at_us": mark.at_us, "letter": mark.letter, "what": mark.words}
        for gateway in view.gateways
        for mark in gateway.happened
    ]
    happened.sort(key=lambda entry: -int(str(entry["at_us"])))
    return frame(
        view, "gateways", "Gateways", "Who serves, do they agree, what is wrong?",
        columns=rows, differing=_differing(rows), happened=happened[:50],
        troubles=[{**trouble, "gateway": row["name"]} for row in rows for trouble in row["troubles"]],
        commands=_commands(view),
        warnings=[{"gateway": row["name"], "words": words} for row in rows for words in row["warnings"]],
    )  # fmt: skip


def _commands(view: View) -> Document:
    """What operators had changed, as the audit has it."""
    stored = view.stored
    rows = [{**command, "words": _words(command)} for command in stored.commands]
    return {"can_read": stored.can_read, "age_s": view.age_s(stored.at_us), "problem": stored.problem, "rows": rows}


def _words(command: Mapping[str, Any]) -> str:
    """The command in words."""
    if command["change"]:
        return " ".join(filter(None, (command["what"], command["node"]))) + f": {command['change']}"
    durable = f"durable {command['durable']}" if command["durable"] not in ("", "queue") else ""
    to, where = (f"{word} {command[word]}" if command[word] else "" for word in ("to", "where"))
    return " ".join(filter(None, (command["what"], command["node"], durable, to, where)))


def _gateway(view: View, gateway: Gateway) -> Document:
    health, samples = gateway.health, gateway.samples
    started = samples.one("process_start_time_seconds")
    gone = bool(gateway.failed_us)
    fields: Document = {
        **gateway_row(view, gateway),
        "detail": health.get("detail") or "",
        "realm": health.get("realm") or "",
        "profile": health.get("profile") or "",
        "digest": health.get("digest") or "",
        "started": iso(started * 1e6) if started else None,
        "started_us": started * 1e6 if started else 0,
        "lease_held": health.get("lease_held"),
        "evidence_failed": (health.get("evidence") or {}).get("failed"),
        "round_s": round(gateway.slow_s, 3),
        "troubles": [
            {**trouble, "since": iso(trouble["since_us"]), "old": gone} for trouble in health.get("problems") or ()
        ],
        "warnings": [] if gone else [words for words in health.get("warnings") or () if not _is_trouble(words, health)],
    }  # fmt: skip
    return fields | {
        name: samples.one(f"realmgate_{metric}")
        for name, metric in (
            ("connections", "connections"), ("connections_limit", "connections_limit"), ("links", "links"),
            ("transactions", "transactions_open"), ("transaction_bytes", "transaction_bytes"),
            ("unsettled", "unsettled_deliveries"), ("in_flight_bytes", "in_flight_bytes"),
            ("in_flight_limit_bytes", "in_flight_limit_bytes"), ("evidence_pending", "evidence_pending"),
            ("control_pending", "control_pending"), ("event_memory_bytes", "event_memory_bytes"),
        )
    } | {
        "memory_bytes": samples.one("process_resident_memory_bytes"),
        "files": samples.one("process_open_fds"), "files_limit": samples.one("process_max_fds"),
        "journal_ms": _mean_ms(gateway, "realmgate_journal_transaction_seconds"),
        "append_ms": _mean_ms(gateway, "realmgate_publish_append_seconds"),
        **{
            f"{word}_{name}_ms": quantile_ms(gateway, f"realmgate_{word}_seconds", part)
            for word in ("accept", "settle", "commit")
            for name, part in (("p50", 0.5), ("p99", 0.99))
        },
    }  # fmt: skip


def _is_trouble(words: str, health: dict[str, Any]) -> bool:
    """A warning that repeats a problem."""
    return any(words.startswith(problem["kind"]) for problem in health.get("problems") or ())


def _mean_ms(gateway: Gateway, name: str) -> float | None:
    count, total = gateway.samples.one(f"{name}_count"), gateway.samples.one(f"{name}_sum")
    return round(total / count * 1000, 1) if count and total is not None else None


def quantile_ms(gateway: Gateway, name: str, part: float) -> float | None:
    seconds = quantile_s(gateway.samples, name, part)
    return None if seconds is None else round(seconds * 1000, 2)


def _differing(rows: list[Document]) -> list[str]:
    """What gateways should agree in and do not."""
    return [
        name for name in ("realm", "profile", "digest") if len({row[name] for row in rows if row[name]}) > 1
    ]  # fmt: skip
