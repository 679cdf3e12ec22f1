"""`/health`: may this gateway be used, and what should an operator look at. JSON; 200 when it serves, else 503.

| state | | |
|---|---|---|
| `ready` | 200 | nothing is wrong |
| `degraded` | 200 | something is, and what it does not concern goes on: `problems` names it |
| `cannot-write`, `lease-lapsed` | 503 | no peer can be served, until it is mended |
| `turn-fails` | 503 | an error of the gateway itself keeps a part of it from its work |
| `stopping`, `taken-over` | 503 | this process ends |
| `opening`, `standby` | 503 | it does not listen yet |
"""

from __future__ import annotations

from dataclasses import asdict
from http import HTTPStatus
from typing import Any

import orjson

from gateway.admin.http import JSON, Response
from gateway.admin.problems import KEEPS_OUT, Problem, problems
from gateway.admin.watched import Watched
from gateway.config.file_modes import open_warnings
from gateway.config.limits import PROBLEMS_SHOWN
from gateway.reload.tables import TableReload
from gateway.session.gateway import Gateway

_PROBLEM_CHARACTERS = 500
_SERVES = ("ready", "degraded")


def state_of(gateway: Gateway, open_problems: list[Problem]) -> str:
    """`ready`, or why not. `open_problems`: all problems that there are."""
    if gateway.realm.lost:
        return "taken-over"
    if gateway.stopping:
        return "stopping"
    if not gateway.realm.metrics.lease_held:
        return "lease-lapsed"
    if open_problems and open_problems[0].kind in KEEPS_OUT:
        return open_problems[0].kind
    return "degraded" if open_problems else "ready"


def is_ready(state: str) -> bool:
    """Peers are served."""
    return state in _SERVES


def health(watched: Watched) -> Response:
    """Of a gateway whose realm is open."""
    gateway, reload, certificates = watched.gateway, watched.reload, watched.certificates
    open_problems = problems(watched)
    state = state_of(gateway, open_problems)
    figures, tables = gateway.realm.metrics, gateway.tables
    document: dict[str, Any] = {
        "state": state,
        "run": gateway.realm.run,
        "problems": [_shown(problem) for problem in open_problems[:PROBLEMS_SHOWN]],
        "problems_left_out": max(0, len(open_problems) - PROBLEMS_SHOWN),
        "warnings": [*map(str, open_problems[:PROBLEMS_SHOWN]), *_warnings(gateway)],
        "realm": {"kind": gateway.realm.kind, "lease_held": figures.lease_held, "taken_over": gateway.realm.lost},
        "tables": {"digest": tables.digest, "profile": tables.profile},
        "reload": _reload(reload),
        "evidence": {"failed": figures.evidence_failed, "pending": figures.evidence_pending},
        "connections": len(gateway.connections),
        "links": gateway.links,
        "alarms": dict(figures.alarms),
    }
    if certificates is not None:
        document["tls"] = {
            "read": certificates.done,
            "refused": certificates.refused,
            "problem": "".join(certificates.problems[:1])[:_PROBLEM_CHARACTERS],
        }
    return answered(is_ready(state), **document)


def _shown(problem: Problem) -> dict[str, Any]:
    return {**asdict(problem), "detail": problem.detail[:_PROBLEM_CHARACTERS]}


def waiting(state: str, words: str, run: str) -> Response:
    """Of a gateway whose realm is not open yet: `opening`, or `standby` while another one owns it."""
    return answered(False, state=state, run=run, detail=words)


def answered(is_good: bool, **what: Any) -> Response:
    """JSON; 200 or 503."""
    status = HTTPStatus.OK if is_good else HTTPStatus.SERVICE_UNAVAILABLE
    return Response(status, JSON, orjson.dumps(what, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))


def _reload(reload: TableReload) -> dict[str, Any]:
    return {
        "done": reload.done,
        "refused": reload.refused,
        "last_tried_us": reload.tried_us or None,
        "last_done_us": reload.done_us or None,
        "problems": [problem[:_PROBLEM_CHARACTERS] for problem in reload.problems[:PROBLEMS_SHOWN]],
        "problems_left_out": max(0, len(reload.problems) - PROBLEMS_SHOWN),
    }


def _warnings(gateway: Gateway) -> list[str]:
    """What is as it was set up, or was once: it changes no state."""
    figures = gateway.realm.metrics
    warnings = [*open_warnings(gateway.settings, gateway.realm.authorizer.has_grants)]
    if gateway.users.weakness:
        warnings.append(gateway.users.weakness)
    if words := gateway.arrivals.standing():
        warnings.append(words)
    if figures.evidence_failed:
        warnings.append(f"{figures.evidence_failed} evidence records were not stored: reconciliation will show gaps")
    warnings += gateway.waiting_bytes.standing()
    return warnings + [f"{name}: {count}" for name, count in figures.alarms.items() if count]
