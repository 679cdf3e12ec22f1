"""What the report of a reconciliation says against a history in which nothing is wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

CLEAN, ANOMALIES = 0, 1


def objections(manifest: Mapping[str, Any], code: int, is_doubled: bool) -> Iterator[str]:
    """What a report says against the run. `code`: its exit code."""
    named = [entry for entry in manifest["classes"] if entry["count"] and entry["severity"] != "i"]
    for entry in named:
        if not (entry["class"] == "P2" and is_doubled):
            yield f"{entry['class']} {entry['count']}: {str(entry['examples'][:2])[:500]}"
    if difference := manifest["balance"]["difference"]:
        yield f"the books do not close: {difference}"
    elif not manifest["complete"] and not any(entry["class"] == "Q1" for entry in named):
        yield f"not everything was seen: the verdict is {manifest['verdict']}"
    elif code == ANOMALIES and not named:
        yield f"the verdict is {manifest['verdict']}, and nothing is named"
