"""What a reconciliation says against a history in which nothing is wrong."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from reconciliation.ledgers.checks import SKEW_US
from reconciliation.model.settings import Realm
from tests.kit.objections import objections
from tests.kit.processes.gateway import GatewayProcess
from tests.reconciliation.conftest import Reconcile


def objections_to(gateway: GatewayProcess, reconcile: Reconcile, ledgers: Path) -> list[str]:
    """As one that begins later: of what was given just now it would not be known whether its store was made since."""
    realm: dict[str, Any] = gateway.settings["realm"]
    later = time.time_ns() // 1000 + 2 * SKEW_US
    if realm["kind"] == "kafka":
        result = reconcile(Realm("kafka", realm["prefix"], bootstrap=realm["bootstrap"]), now_us=later, ledgers=ledgers)
    else:
        result = reconcile(Realm("embedded", "um", path=Path(realm["path"])), now_us=later, ledgers=ledgers)
    return [*objections(result.manifest, result.code, is_doubled=False)]
