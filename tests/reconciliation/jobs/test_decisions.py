"""Records of what is no delivery, and errors of consumers, are read over: the books close, holes are still seen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from native_backend.log.open import open_embedded
from reconciliation.model.settings import Realm
from tests.kit.processes.gateway import StartGateway
from tests.kit.wire import frames
from tests.kit.wire.consumer_errors import BAD, given_back, with_letters
from tests.kit.wire.transacting import Transacting
from tests.reconciliation.conftest import Reconcile
from tests.reconciliation.planting import delete


def test_decisions_and_errors_are_read_over(new_gateway: StartGateway, reconcile: Reconcile) -> None:
    gateway = new_gateway("embedded", nodes={})
    with_letters(gateway, "orders")
    with Transacting(gateway.port) as peer:
        peer.send(frames.attach_sender("nowhere", 0, "refused"))
        assert peer.refused() == "amqp:not-found"
        peer.publisher("orders", handle=2)
        transaction = peer.begun()
        peer.post(transaction, frames.message(), handle=2)
        peer.dispositions(1)
        assert peer.discharge(transaction) == "accepted"
    with Transacting(gateway.port) as peer:
        peer.consumer("orders", credit=1)
        peer.receive(1)
        peer.settle([0], frames.state("accepted"))
        peer.send(frames.detach(1))
        peer.expect("detach")
    given_back(gateway, "orders", BAD)
    assert gateway.stop() == 0
    directory = Path(gateway.config_path).parent / "realm"
    log = open_embedded(directory)
    outcomes = log.control.read_range("um.outcomes", 0, 0, 1000)
    log.close()
    records: dict[int, dict[str, Any]] = {
        offset: orjson.loads(value) for offset, value in zip(outcomes.offsets, outcomes.values, strict=True) if value
    }
    whats = {decision["what"] for record in records.values() for decision in record.get("decisions", ())}
    assert {"attach", "declare", "commit"} <= whats
    assert any(group.get("errors") for record in records.values() for group in record["groups"])
    result = reconcile(Realm("embedded", "um", path=directory))
    assert result.text.startswith("Verdict: CLEAN."), result.text
    delete(directory, "um.outcomes", next(at for at, record in records.items() if record.get("decisions")))
    result = reconcile(Realm("embedded", "um", path=directory))
    assert not result.text.startswith("Verdict: CLEAN."), "one of them is gone"
