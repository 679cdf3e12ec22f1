"""`/health`: may this gateway be used, and what should an operator look at. JSON; 200 when it serves, else 503.

What is refused or failed without keeping peers out is a warning and does not change the status. May import: `gateway`,
orjson.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import orjson

from gateway.admin.http import JSON, Response
from gateway.limits import PROBLEMS_SHOWN

if TYPE_CHECKING:
    from gateway.certificates import Certificates
    from gateway.gateway import Gateway
    from gateway.reload import Reload

_PROBLEM_CHARACTERS = 500


def state_of(gateway: Gateway) -> str:
    """`ready`, or why not."""
    if gateway.realm.lost:
        return "taken-over"
    if gateway.stopping:
        return "stopping"
    return "ready" if gateway.realm.figures.lease_held else "lease-lapsed"


def health(gateway: Gateway, reload: Reload, certificates: Certificates | None = None) -> Response:
    """Of a gateway whose realm is open; `certificates` where it speaks TLS."""
    state = state_of(gateway)
    figures, tables = gateway.realm.figures, gateway.tables
    document: dict[str, Any] = {
        "state": state,
        "run": gateway.realm.run,
        "realm": {"kind": gateway.realm.kind, "lease_held": figures.lease_held, "taken_over": gateway.realm.lost},
        "tables": {"digest": tables.digest, "profile": tables.profile},
        "reload": _reload(reload),
        "evidence": {"failed": figures.evidence_failed, "pending": figures.evidence_pending},
        "connections": len(gateway.connections),
        "links": gateway.links,
        "alarms": dict(figures.alarms),
        "warnings": [*_warnings(gateway, reload)],
    }
    if certificates is not None:
        document["tls"] = {
            "read": certificates.read,
            "refused": certificates.refused,
            "problem": certificates.problem[:_PROBLEM_CHARACTERS],
        }
        if certificates.problem:
            document["warnings"].append("the certificates on disk were refused: mend what tls.problem names")
    return _response(document, is_ready=state == "ready")


def waiting(state: str, words: str, run: str) -> Response:
    """Of a gateway whose realm is not open yet: `opening`, or `standby` while another one owns it."""
    return _response({"state": state, "run": run, "detail": words}, is_ready=False)


def _response(document: dict[str, Any], *, is_ready: bool) -> Response:
    status = HTTPStatus.OK if is_ready else HTTPStatus.SERVICE_UNAVAILABLE
    return Response(status, JSON, orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))


def _reload(reload: Reload) -> dict[str, Any]:
    return {
        "done": reload.done,
        "refused": reload.refused,
        "last_tried_us": reload.tried_us or None,
        "last_done_us": reload.done_us or None,
        "problems": [problem[:_PROBLEM_CHARACTERS] for problem in reload.problems[:PROBLEMS_SHOWN]],
        "problems_left_out": max(0, len(reload.problems) - PROBLEMS_SHOWN),
    }


def _warnings(gateway: Gateway, reload: Reload) -> list[str]:
    figures, said = gateway.realm.figures, []
    if reload.problems:
        said.append("the tables on disk were refused: mend what reload.problems names; those before stay in force")
    if figures.evidence_failed:
        said.append(f"{figures.evidence_failed} evidence records were not stored: reconciliation will show holes")
    if gateway.in_flight_bytes > gateway.limits.in_flight_bytes:
        said.append("reading from publishers pauses: the realm does not keep up")
    said += [f"{name}: {count}" for name, count in figures.alarms.items() if count]
    return said
