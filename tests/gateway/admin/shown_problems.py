"""What /health and the metrics show of a problem."""

from __future__ import annotations

from typing import Any

from tests.kit.processes.admin_pages import Watch

ADMIN = {"listen": "http://127.0.0.1:0"}


def problem(watch: Watch, kind: str, about: str = "") -> dict[str, Any] | None:
    problems = [row for row in watch.health()["problems"] if (row["kind"], row["about"]) == (kind, about)]
    return problems[0] if problems else None


def is_shown(watch: Watch, kind: str, about: str = "") -> bool:
    """In /health, and in the metrics alike."""
    return (problem(watch, kind, about) is not None) and ("realmgate_problem", (about, kind)) in watch.metrics()


def is_well(watch: Watch) -> bool:
    shown = watch.health()
    metrics = watch.metrics()
    return (shown["status"], shown["state"], shown["problems"]) == (200, "ready", []) and not any(
        name == "realmgate_problem" for name, _ in metrics
    )
