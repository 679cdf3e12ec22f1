"""A store that has no room: publishers are refused as row P-R2b says, and their links go on; commits are refused, and
settlements wait. On a real full disk."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.kit.processes.gateway import embedded_realm, make_gateway
from tests.kit.processes.small_disk import small_disk
from tests.kit.wire import frames
from tests.kit.wire.peer import Peer
from tests.kit.wire.reloading import MESSAGE
from tests.kit.wire.transacting import Transacting

REFUSED = "rejected:amqp:resource-limit-exceeded"


@pytest.mark.parametrize("profile", ["extended", "um-9.9", "um-9.12"])
def test_a_full_store_refuses_for_now_and_the_link_goes_on(tmp_path: Path, profile: str) -> None:
    with small_disk(tmp_path / "disk") as disk:
        gateway = make_gateway(tmp_path, embedded_realm(tmp_path / "disk"), mappings={"profile": profile})
        gateway.environment = disk.environment
        gateway.start()
        try:
            with Peer(gateway.port) as peer:
                peer.publisher("orders")
                assert set(peer.outcomes(len(peer.publish(MESSAGE))).values()) == {"accepted"}
                disk.fill()
                assert set(peer.outcomes(len(peer.publish(*[MESSAGE] * 5))).values()) == {REFUSED}
                listed = json.loads(gateway.command("node", "list", "orders", "--json"))
                assert [node["messages"] for node in listed] == [1], "what is stored can be read"
                [durable] = json.loads(gateway.command("durable", "list", "orders", "--json"))
                assert durable["stored"] == 1
                disk.clear()
                assert set(peer.outcomes(len(peer.publish(*[MESSAGE] * 5))).values()) == {"accepted"}
        finally:
            gateway.stop()


def test_a_full_store_refuses_commits_and_lets_settlements_wait(tmp_path: Path) -> None:
    """A discharge is answered while the outcome of a consumer waits; when there is room, both are carried out."""
    with small_disk(tmp_path / "disk") as disk:
        gateway = make_gateway(tmp_path, embedded_realm(tmp_path / "disk"))
        gateway.environment = disk.environment
        gateway.start()
        try:
            with Transacting(gateway.port) as peer, Peer(gateway.port) as consumer:
                peer.publisher("orders")
                consumer.stored("orders", MESSAGE)
                transaction = peer.begun()
                consumer.consumer("orders", credit=1, rcv=1)
                [given] = consumer.receive(1)
                peer.promised(*peer.post(transaction, *[MESSAGE] * 5))
                disk.fill()
                consumer.settle([given.field(1)], frames.state("accepted"), settled=False)
                assert peer.discharge(transaction) == "rejected:amqp:transaction:rollback"
                assert peer.discharge(peer.declare()) == "accepted", "nothing is to be stored of it"
                consumer.nothing_at_once()
                disk.clear()
                assert consumer.outcomes(1) == {given.field(1): "accepted"}
                again = peer.declare()
                peer.promised(*peer.post(again, MESSAGE))
                assert peer.discharge(again) == "accepted"
                consumer.credit(1)
                assert [seen.payload for seen in consumer.receive(1)] == [MESSAGE]
        finally:
            gateway.stop()
