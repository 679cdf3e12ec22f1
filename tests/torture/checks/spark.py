"""What Spark says of the same run: `realmgate reconcile`, compared with the checker's own words.

Both must find nothing; but what was doubled in doubt is written twice (P2).
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from tests.kit.processes.gateway import REALMGATE
from tests.torture.checks.guarantees import Violation
from tests.torture.system.deployment import Deployment

RECONCILE_S = 600.0
CLEAN, ANOMALIES = 0, 1


def anomalies(deployment: Deployment, *, is_doubled: bool) -> list[Violation]:
    """Anomalies that Spark finds and the checker does not."""
    out = deployment.directory / "reconciled"
    done = subprocess.run(
        [REALMGATE, "reconcile", "--config", deployment.config_path, "--out", out],
        capture_output=True,
        text=True,
        timeout=RECONCILE_S,
        check=False,
    )
    if done.returncode not in (CLEAN, ANOMALIES):
        return [Violation("Spark agrees", f"it ended with {done.returncode}: {done.stderr[-2000:]}")]
    allowed = {"P2": is_doubled}
    return [
        Violation("Spark agrees", f"{entry['class']} {entry['count']}: {str(entry['examples'][:2])[:500]}")
        for entry in _classes(out)
        if entry["count"] and entry["severity"] != "i" and not allowed.get(entry["class"])
    ]


def _classes(out: Path) -> list[dict[str, Any]]:
    classes: list[dict[str, Any]] = json.loads((out / "manifest.json").read_text())["classes"]
    return classes
