"""What a subscriber without a durable gives back: told to it, in no journal, and nothing is an anomaly."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from native_backend.journal.journal import tail
from native_backend.log.open import open_embedded
from reconciliation.model.settings import Realm
from tests.kit.processes.gateway import StartGateway
from tests.kit.wire import frames
from tests.kit.wire.transacting import Transacting
from tests.reconciliation.conftest import Reconcile

NEWS = "any.news"
ACCEPTED, RELEASED, FAILED = frames.state("accepted"), frames.state("released"), frames.state("modified", True, False)


@pytest.mark.timeout(600)  # Spark starts with it
def test_what_comes_again_to_a_plain_subscriber_is_no_anomaly(new_gateway: StartGateway, reconcile: Reconcile) -> None:
    gateway = new_gateway("embedded", nodes={"create_on_attach": ["any.*"]})
    with Transacting(gateway.port) as peer:
        peer.publisher(NEWS, "channel")
        peer.consumer(NEWS, credit=4)
        peer.stored(NEWS, *(frames.message(b"%d" % at) for at in range(4)), kind="channel")
        for outcome in (RELEASED, FAILED):
            peer.settle([seen.field(1) for seen in peer.receive(4)], outcome)
            peer.credit(4)
        again = peer.receive(4)
        transaction = peer.begun()
        peer.settle([seen.field(1) for seen in again[:2]], frames.in_transaction(transaction, ACCEPTED))
        assert peer.discharge(transaction, fail=True) == "accepted"
        peer.credit(4)
        peer.settle([seen.field(1) for seen in [*again[2:], *peer.receive(2)]], ACCEPTED)
    assert gateway.stop() == 0, gateway.log()
    directory = Path(gateway.config_path).parent / "realm"
    log = open_embedded(directory)
    entries = [entry for _, record in tail(log, "um.journal", 0) for entry in record["entries"]]
    journaled = [entry for entry in entries if entry["operation"] != "recorded"]  # that is said of outcome records
    end = log.control.bounds("um.outcomes", 0)[1]
    records = [json.loads(value or b"") for value in log.control.read_range("um.outcomes", 0, 0, end).values]
    log.close()
    given_back = [group for record in records for group in record["groups"] if group["operation"] == "return"]
    assert journaled == []
    assert {(group["durable"], group["answer"]) for group in given_back} == {(None, "done")}
    assert sum(len(group["seq"]) for group in given_back) == 4 + 4 + 2
    result = reconcile(Realm("embedded", "um", path=directory))
    assert (result.classes(), result.code) == ({}, 0), result.text
    assert result.text.startswith("Verdict: CLEAN."), result.text
