"""Rust's fe2o3-amqp, with transactions, through a real gateway process, on both realms. Where there is no cargo
(README.md), it is not run."""

from __future__ import annotations

import shutil

import pytest

from tests.gateway_process import GatewayProcess
from tests.interop.clients import fe2o3, waiting

pytestmark = [
    pytest.mark.skipif(shutil.which("cargo") is None, reason="Rust is not installed"),
    pytest.mark.timeout(700),  # the first time it is built, some eighty crates
]
COUNT = 200


def test_fe2o3_sends_transfers_in_transactions_and_receives(house: GatewayProcess) -> None:
    assert fe2o3("send", house.address, "rust-from", COUNT) == f"accepted {COUNT}"
    moved = fe2o3("transfer", house.address, "rust-from", "rust-to", COUNT, 20)
    assert moved == f"committed {COUNT}, rolled back 20"
    assert fe2o3("receive", house.address, "rust-to", COUNT) == f"received {COUNT}"
    assert waiting(house, "rust-from") == waiting(house, "rust-to") == 0
