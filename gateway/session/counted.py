"""What a gateway has counted since its run began, for the history: once a minute, some thousand numbers at most.

Microseconds, counts.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from gateway.evidence.history import Counts, Reading
from gateway.links.shared import Shared
from native_backend.state.durations import Durations


def counted(gateway: Shared, connections: int) -> Reading:
    """All bounded counters that `/metrics` shows. `connections`: how many there are now."""
    counters, figures = gateway.outcomes.counters, gateway.realm.metrics
    counts: dict[str, Counts] = {
        "deliveries": _copied(counters.deliveries),
        "errors": _copied(counters.errors),
        "rules": _copied(counters.rules),
        "dead_letters": _copied(figures.dead_letters),
        "faults": {(name,): count for name, count in gateway.faults.items()},
        "alarms": {(name,): count for name, count in figures.alarms.items()},
    }
    seconds = {
        "accept": _classes(gateway.accept_seconds),
        "settle": _classes(gateway.settle_seconds),
        "commit": _classes(gateway.commit_seconds),
        "journal": _classes(figures.journal_seconds),
        "publish": _classes(figures.publish_seconds),
    }
    new_connections, new_links = gateway.numbered
    numbers = {
        "new_connections": new_connections,
        "new_links": new_links,
        "journal_records": figures.journal_records,
        "outcome_records": gateway.outcomes.records,
        "evidence_failed": figures.evidence_failed,
    }
    return Reading(counts, seconds, numbers, {"connections": connections, "links": gateway.links})


def _copied(counts: Counter[Any]) -> Counts:
    return dict(counts)


def _classes(durations: Durations) -> tuple[list[int], int]:
    return [*durations.counts], round(durations.total_s * 1e6)
