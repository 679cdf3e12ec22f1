"""What Spark says of the same run: `realmgate reconcile`, compared with the checker's own words.

Both must find nothing; but what was doubled in doubt is written twice (P2).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.kit.processes.gateway import reconciled
from tests.torture.checks.guarantees import Violation
from tests.torture.system.deployment import Deployment

CLEAN, ANOMALIES = 0, 1


def anomalies(deployment: Deployment, ledgers: Path, *, is_doubled: bool) -> list[Violation]:
    """Anomalies that Spark finds and the checker does not. `ledgers`: the directory of the peers' own."""
    out = deployment.directory / "reconciled"
    done = reconciled(deployment.config_path, out, "--ledgers", ledgers)
    if done.returncode not in (CLEAN, ANOMALIES):
        return [Violation("Spark agrees", f"it ended with {done.returncode}: {done.stderr[-2000:]}")]
    manifest = json.loads((out / "manifest.json").read_text())
    return [Violation("Spark agrees", words) for words in objections(manifest, done.returncode, is_doubled)]


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
