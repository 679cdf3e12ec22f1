"""A release of Kafka that is known to lose what was committed is named where operators look."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.cli.doctor.command import examine
from native_backend.log.kafka.inspecting import RISK
from tests.kit.patience import HANG_S
from tests.kit.processes.broker import start_broker
from tests.kit.processes.gateway import kafka_realm, make_gateway


@pytest.mark.parametrize("is_later", [False, True])
def test_a_release_that_leaves_transactions_open_is_named(is_later: bool, tmp_path: Path) -> None:
    """4.2 says that it knows what 4.3 brings, where it is set to try that (ADR 0138)."""
    other = {"unstable.feature.versions.enable": "true"} if is_later else {}
    broker = start_broker(tmp_path / "kafka", is_killed=False, other=other)
    gateway = make_gateway(tmp_path, kafka_realm(broker.bootstrap, "release"))
    try:
        gateway.start()
        assert (RISK in gateway.log_path.read_text()) is is_later
        findings = examine(gateway.config_path, None, HANG_S)[1]
        warned = [finding for finding in findings if finding.check == "broker" and finding.status == "warn"]
        assert [finding.words for finding in warned] == [RISK] * is_later
    finally:
        gateway.stop()
        broker.stop()
