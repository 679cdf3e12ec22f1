"""What Spark says of the same run: `realmgate reconcile`, compared with the checker's own words.

Both must find nothing; but what was doubled in doubt is written twice (P2).
"""

from __future__ import annotations

import json
from pathlib import Path

from tests.kit.objections import ANOMALIES, CLEAN, objections
from tests.kit.processes.gateway import reconciled
from tests.torture.checks.guarantees import Violation
from tests.torture.system.deployment import Deployment


def anomalies(deployment: Deployment, ledgers: Path, *, is_doubled: bool) -> list[Violation]:
    """Anomalies that Spark finds and the checker does not. `ledgers`: the directory of the peers' own."""
    out = deployment.directory / "reconciled"
    done = reconciled(deployment.config_path, out, "--ledgers", ledgers)
    if done.returncode not in (CLEAN, ANOMALIES):
        return [Violation("Spark agrees", f"it ended with {done.returncode}: {done.stderr[-2000:]}")]
    manifest = json.loads((out / "manifest.json").read_text())
    return [Violation("Spark agrees", words) for words in objections(manifest, done.returncode, is_doubled)]
