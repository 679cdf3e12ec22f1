"""Shared, volatile, lapsed and unsubscribed durables of a real gateway: nothing is an anomaly, and the books close."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reconciliation.model.settings import Realm
from tests.kit.processes.gateway import GatewayProcess, embedded_realm, start_gateway
from tests.kit.wire import frames
from tests.kit.wire.peer import Peer
from tests.reconciliation.conftest import Reconcile, Result

ACCEPTED = frames.state("accepted")
MESSAGES = [frames.message(b"%d" % number) for number in range(20)]


def _source(channel: str, durable: int, capability: str, expiry: str = "never") -> Any:
    return frames.source(channel, durable, capability=capability, expiry=expiry)


def _live(gateway: GatewayProcess) -> None:
    shared, volatile = _source("any.news", 2, "shared,global"), _source("any.news", 0, "shared")
    with Peer(gateway.port, "one") as first, Peer(gateway.port, "two") as two:
        first.publisher("any.news", "channel")
        first.consumer(shared, credit=8, name="s|global")
        two.consumer(shared, credit=12, name="s|global")
        first.consumer(volatile, credit=0, handle=2, name="v|volatile1")
        two.consumer(_source("any.news", 2, "topic"), credit=0, handle=2, name="mine")
        two.consumer(_source("any.news", 2, "topic", "session-end"), credit=0, handle=3, name="short")
        first.stored("any.news", *MESSAGES, kind="channel")
        assert len(first.receive(8)) + len(two.receive(12)) == 20
        first.settle(range(5), ACCEPTED, settled=False)
        two.settle(range(12), ACCEPTED, settled=False)
        first.outcomes(5)
        two.outcomes(12)
        first.credit(4, 2)
        first.receive(4, 2)
        first.settle([8, 9], ACCEPTED, settled=False)
        first.outcomes(2)
        two.credit(3, 2)
        two.receive(3, 2)
        two.settle([12], ACCEPTED, settled=False)
        two.outcomes(1)
        first.close()
        two.credit(3)
        assert len(two.receive(3)) == 3  # what the other one had not stated
        two.settle(range(15, 18), ACCEPTED, settled=False)
        two.outcomes(3)
    with Peer(gateway.port, "two") as two:
        two.send(frames.attach_without_source("mine"))
        two.expect("attach")
        two.send(frames.detach(1))
        assert two.expect("detach").condition is None


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory, reconcile: Reconcile) -> Result:
    directory: Path = tmp_path_factory.mktemp("shared")
    realm = embedded_realm(directory)
    gateway = start_gateway(directory, realm, nodes={"create_on_attach": ["any.*"]})
    try:
        _live(gateway)
    finally:
        assert gateway.stop() == 0, gateway.log()
    return reconcile(Realm("embedded", "um", path=Path(str(realm["path"]))))


def test_the_shared_durable_s_book_closes(result: Result) -> None:
    held = {durable["durable"]: durable for durable in result.manifest["balance"]["durables"]}
    assert set(held) == {":s"}, "the others have ended"
    assert (held[":s"]["entitled"], held[":s"]["acknowledged"], held[":s"]["available"]) == (20, 20, 0)
    assert result.manifest["balance"]["difference"] == 0


def test_nothing_of_it_is_an_anomaly(result: Result) -> None:
    assert result.classes() == {}
    assert result.manifest["clean"] and result.manifest["complete"]
    assert result.code == 0
