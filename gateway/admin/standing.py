"""What one gateway is and how it stands, in one object: `/api/gateway`. Seconds, octets, microseconds since 1970."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from gateway.admin.watched import Watched
from gateway.config.limits import PROBLEMS_SHOWN

_PROBLEM_CHARACTERS = 500


def process_facts() -> dict[str, Any]:
    """What stays as it is while the process lives. Reads the installed package: some milliseconds."""
    try:
        release = version("realmgate")
    except PackageNotFoundError:
        release = ""
    return {"version": release or None, "host": socket.gethostname(), "pid": os.getpid()}


def standing(watched: Watched, process: Mapping[str, Any]) -> dict[str, Any]:
    """As of now."""
    gateway, figures = watched.gateway, watched.gateway.realm.metrics
    lease, realm, limits = figures.lease, gateway.settings.realm, gateway.limits
    return {
        **process,
        "since_us": gateway.since_us,
        "listen": [*watched.listen],
        "realm": {
            "kind": gateway.realm.kind,
            "place": realm.place,
            "prefix": realm.prefix,
            "taken_over": gateway.realm.lost,
        },
        "lease": {
            "held": lease.held,
            "term": lease.term,
            "looked_s": round(lease.looked_s, 3),
            "lapses_s": lease.lapses_s,
        },
        "tables": _tables(watched),
        "connections": len(gateway.connections),
        "connections_max": limits.connections,
        "links": gateway.links,
        "links_max": limits.links,
        "transactions": gateway.transactions,
        "transactions_max": limits.transactions,
        "credit": gateway.credit.granted,
        "credit_max": limits.in_flight,
        "in_flight_bytes": gateway.in_flight_bytes,
        "in_flight_bytes_max": limits.in_flight_bytes,
        "evidence": {
            "records": gateway.outcomes.records,
            "pending": figures.evidence_pending,
            "failed": figures.evidence_failed,
        },
        "journal": {"records": figures.journal_records},
        "stores_counting": figures.depths.counting,
    }


def _tables(watched: Watched) -> dict[str, Any]:
    gateway, tables = watched.gateway, watched.gateway.tables
    directory = gateway.settings.mappings.directory
    return {
        "digest": tables.digest,
        "profile": tables.profile,
        "directory": str(directory) if directory is not None else None,
        "rules": sum(len(tables[name].rules) for name in tables),
        "since_us": gateway.tables_since_us,
        "refused": [problem[:_PROBLEM_CHARACTERS] for problem in watched.reload.problems[:PROBLEMS_SHOWN]],
    }
