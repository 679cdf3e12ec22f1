"""Rust's fe2o3-amqp, with transactions, through a real gateway process, on both realms. Where there is no cargo
(README.md), it is not run."""

from __future__ import annotations

import pytest

from tests.interop.clients import fe2o3, waiting
from tests.kit.processes.gateway import GatewayProcess
from tests.kit.processes.toolchains import NEEDS_RUST

pytestmark = [
    NEEDS_RUST,
    pytest.mark.timeout(700),  # the first time it is built, some eighty crates
]
COUNT = 200


def test_fe2o3_sends_transfers_in_transactions_and_receives(gateway: GatewayProcess) -> None:
    assert fe2o3("send", gateway.address, "rust-from", COUNT) == f"accepted {COUNT}"
    moved = fe2o3("transfer", gateway.address, "rust-from", "rust-to", COUNT, 20)
    assert moved == f"committed {COUNT}, rolled back 20"
    assert fe2o3("receive", gateway.address, "rust-to", COUNT) == f"received {COUNT}"
    assert waiting(gateway, "rust-from") == waiting(gateway, "rust-to") == 0
