"""Nothing is found in histories in which nothing is wrong, and the books close.

`python -m tests.reconciliation.histories` lives many more.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kit.processes.gateway import GatewayProcess, embedded_realm, kafka_realm, make_gateway
from tests.reconciliation.conftest import Reconcile
from tests.reconciliation.histories.history import History
from tests.reconciliation.judging import objections_to

STEPS = 25


def lived(gateway: GatewayProcess, reconcile: Reconcile, seed: int, ledgers: Path) -> None:
    history = History(seed, gateway, ledgers, partitions=1 + seed % 3)
    try:
        history.live(STEPS)
    finally:
        gateway.stop()
    assert objections_to(gateway, reconcile, ledgers) == [], history.done


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_nothing_is_found_on_the_embedded_realm(seed: int, reconcile: Reconcile, tmp_path: Path) -> None:
    lived(make_gateway(tmp_path, embedded_realm(tmp_path)), reconcile, seed, tmp_path / "ledgers")


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_nothing_is_found_on_kafka(seed: int, reconcile: Reconcile, kafka_bootstrap: str, tmp_path: Path) -> None:
    realm = kafka_realm(kafka_bootstrap, f"honest-{seed}")
    lived(make_gateway(tmp_path, realm), reconcile, seed, tmp_path / "ledgers")
