"""What a reconciliation says of a gateway whose clients have noted what they did."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from reconciliation.ledgers.checks import SKEW_US
from reconciliation.model.settings import Realm
from tests.kit.objections import objections
from tests.kit.processes.gateway import GatewayProcess
from tests.reconciliation.conftest import Reconcile, Result


def judged(gateway: GatewayProcess, reconcile: Reconcile, ledgers: Path) -> Result:
    """As one that begins later: of what was given just now it would not be known whether its store was made since."""
    realm: dict[str, Any] = gateway.settings["realm"]
    later = time.time_ns() // 1000 + 2 * SKEW_US
    if realm["kind"] == "kafka":
        of_kafka = Realm("kafka", realm["prefix"], bootstrap=realm["bootstrap"])
        return reconcile(of_kafka, ledgers=ledgers, now_us=later)
    return reconcile(Realm("embedded", "um", path=Path(realm["path"])), ledgers=ledgers, now_us=later)


def objections_to(gateway: GatewayProcess, reconcile: Reconcile, ledgers: Path) -> list[str]:
    """Where nothing is wrong."""
    result = judged(gateway, reconcile, ledgers)
    return [*objections(result.manifest, result.code, is_doubled=False)]
