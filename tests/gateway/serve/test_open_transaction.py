"""A journal that cannot be read to its end: nothing is served from a part of it."""

from __future__ import annotations

from tests.kit.processes.gateway import StartGateway
from tests.kit.realm.open_transaction import OpenTransaction


def test_a_gateway_waits_for_a_transaction_that_stays_open_in_its_journal(new_gateway: StartGateway) -> None:
    """As Kafka 4.3 may leave one (ADR 0138): what was committed behind it would be given out again."""
    gateway = new_gateway("kafka")
    realm = gateway.settings["realm"]
    assert gateway.stop() == 0
    hanging = OpenTransaction(realm["bootstrap"], f"hung-{realm['prefix']}", [f"{realm['prefix']}.journal"])
    try:
        gateway.launch()
        gateway.await_log("a transaction stays open")
        assert not gateway.is_ready()
    finally:
        hanging.abort()
    gateway.await_ready()
