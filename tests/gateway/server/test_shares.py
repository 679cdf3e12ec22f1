"""A peer that takes all that it can leaves something for its neighbours, and all is there again when it has gone."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import proton
import pytest
from proton.utils import LinkDetached

from tests.kit.patience import until
from tests.kit.processes.admin_pages import Watch
from tests.kit.processes.gateway import GatewayProcess, embedded_realm, start_gateway
from tests.kit.wire import frames
from tests.kit.wire.logins import PASSWORD, connect, write_users
from tests.kit.wire.peer import Peer
from tests.kit.wire.transacting import Transacting
from transformers.codec import Symbol

HOSTILE, INNOCENT = "127.0.0.2", "127.0.0.1"
MOST, NODES_MOST = 12, 6  # of 16 and 8: while its neighbours have nothing
LIMITS = {
    "connections": 16, "links": 16, "transactions": 16, "temporary_nodes": 8, "in_flight": 320, "credit_per_link": 100,
    "transactions_bytes": 400_000,
}  # fmt: skip
COUNTS = ("connections", "links", "transactions", "credit")


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    directory = tmp_path_factory.mktemp("shares")
    write_users(directory / "users.yaml", greedy=[], modest=[])
    security = {"sasl": ["ANONYMOUS", "PLAIN"], "users": "users.yaml", "plain_without_tls": True}
    admin = {"listen": "http://127.0.0.1:0"}
    gateway = start_gateway(directory, embedded_realm(directory), limits=LIMITS, admin=admin, security=security)
    gateway.command("node", "create", "orders", "--kind", "queue")
    yield gateway
    gateway.end_well()


@pytest.fixture
def watch(gateway: GatewayProcess) -> Iterator[Watch]:
    watch = Watch.of(gateway)
    yield watch
    until(lambda: not any(standing(watch)[name] for name in COUNTS), "all counts to be zero again")


def standing(watch: Watch) -> dict[str, Any]:
    figures: dict[str, Any] = json.loads(watch.ask("/api/gateway")[2])["gateways"][0]["gateway"]
    return figures


def faults(watch: Watch, fault: str) -> float:
    return watch.metrics().get(("realmgate_peer_faults_total", (fault,)), 0.0)


def peer_of(gateway: GatewayProcess, address: str) -> Transacting:
    return Transacting(gateway.port, address=address)


def attached(peer: Peer, number: int) -> str:
    """Why not; empty: it is. One more link."""
    peer.send(frames.attach_receiver("orders", number, f"link-{number}"))
    return answer_of(peer)


def answer_of(peer: Peer) -> str:
    if peer.expect("attach").field(5) is not None:
        return ""
    detached = peer.expect("detach")
    assert detached.condition == "amqp:resource-limit-exceeded"
    return str(detached.field(2).value[1])


def made(peer: Peer, number: int) -> str:
    peer.send(frames.attach_receiver(frames.source(None, dynamic=True), number, f"node-{number}"))
    return answer_of(peer)


def test_connections(gateway: GatewayProcess, watch: Watch) -> None:
    """One more is opened and closed at once, with the reason, and hears before that it will be."""
    peers = [peer_of(gateway, HOSTILE) for _ in range(MOST)]
    refused = []
    for _ in range(20):
        refused.append(peer := Peer(gateway.port, begin=False, address=HOSTILE))
        peer.send(frames.AMQP_HEADER, frames.open_(), frames.begin(), frames.attach_receiver("orders"))
        properties = peer.expect("open").field(9)
        assert (Symbol("amqp:connection-establishment-failed"), True) in properties.pairs
        peer.expect("begin")
        closed = peer.expect("close")
        assert closed.condition == "amqp:resource-limit-exceeded"
        assert closed.field(0).value[1] == (
            "address 127.0.0.2 has 12 of 16 connections, the last 4 are for others; close some, or raise"
            " limits.connections"
        )
    with peer_of(gateway, INNOCENT) as innocent:
        innocent.through("orders")
    assert faults(watch, "too-many-connections") == 20
    for peer in refused:
        peer.close()
    for peer in peers:
        peer.nothing_at_once()
        peer.reset()


def test_links(gateway: GatewayProcess, watch: Watch) -> None:
    before, hostile = faults(watch, "too-many-links"), peer_of(gateway, HOSTILE)
    assert [attached(hostile, number) for number in range(MOST)] == [""] * MOST
    words = "address 127.0.0.2 has 12 of 16 links, the last 4 are for others; close some, or raise limits.links"
    assert [attached(hostile, number) for number in range(MOST, MOST + 3)] == [words] * 3
    with peer_of(gateway, INNOCENT) as innocent:
        innocent.through("orders")
    assert faults(watch, "too-many-links") == before + 3
    hostile.send(frames.detach(0))
    hostile.expect("detach")
    assert attached(hostile, 100) == "", "what it gives back it may have again"
    hostile.reset()


def test_transactions(gateway: GatewayProcess, watch: Watch) -> None:
    hostile = peer_of(gateway, HOSTILE)
    hostile.control()
    for _ in range(MOST):
        hostile.declare()
    hostile.send(frames.declare(hostile.number()))
    disposition = hostile.expect("disposition")
    assert disposition.state == "rejected:amqp:resource-limit-exceeded"
    assert disposition.field(4).value[0].value[1] == (
        "...: address 127.0.0.2 has 12 of 16 open transactions, the last 4 are for others; close some, or raise"
        " limits.transactions"
    )
    with peer_of(gateway, INNOCENT) as innocent:
        innocent.publisher("orders")
        transaction = innocent.begun()
        innocent.promised(*innocent.post(transaction, frames.message()))
        assert innocent.discharge(transaction) == "accepted"
    hostile.reset()


def test_octets_in_transactions(gateway: GatewayProcess, watch: Watch) -> None:
    """Each message is an eighth of what there is."""
    around = len(frames.message(bytes(50_000))) - 50_000
    message = frames.message(bytes(50_000 - around))
    hostile = peer_of(gateway, HOSTILE)
    hostile.publisher("orders")
    transaction = hostile.begun()
    hostile.promised(*hostile.post(transaction, *[message] * 6))
    hostile.post(transaction, message)
    assert hostile.expect("disposition").state == "transactional rejected:amqp:resource-limit-exceeded"
    with peer_of(gateway, INNOCENT) as innocent:
        innocent.publisher("orders")
        small = innocent.begun()
        innocent.promised(*innocent.post(small, message))
        assert innocent.discharge(small) == "accepted"
    assert hostile.discharge(transaction, fail=True) == "accepted"
    again = hostile.declare()
    hostile.promised(*hostile.post(again, *[message] * 6))
    hostile.reset()
    until(lambda: watch.metrics()["realmgate_transaction_bytes", ()] == 0, "what its transaction held to be free")


def test_temporary_nodes(gateway: GatewayProcess, watch: Watch) -> None:
    """Twice, and once more by a neighbour: what went with its link is free again, for every peer."""
    for address in (HOSTILE, HOSTILE, INNOCENT):
        with peer_of(gateway, address) as hostile, peer_of(gateway, "127.0.0.3") as innocent:
            until(lambda: standing(watch)["links"] == 0, "the links before to have gone")
            assert [made(hostile, number) for number in range(NODES_MOST)] == [""] * NODES_MOST
            words = f"address {address} has 6 of 8 temporary nodes, the last 2 are for others; close some"
            assert made(hostile, NODES_MOST).startswith(words)
            assert made(innocent, 0) == ""
            hostile.send(*(frames.detach(number) for number in range(NODES_MOST)))
            for _ in range(NODES_MOST):
                hostile.expect("detach")
            assert made(hostile, 100) == ""


def test_credit(gateway: GatewayProcess, watch: Watch) -> None:
    """Links that are idle have their credit; their neighbour has enough to have more than one message under way."""
    hostile = peer_of(gateway, HOSTILE)
    granted = [hostile.publisher("orders", handle=number) for number in range(10)]
    assert granted[0] == 100 and granted[-1] == 10
    with peer_of(gateway, INNOCENT) as innocent:
        assert innocent.publisher("orders") > 20
        innocent.publish(*[frames.message()] * 20)
        assert set(innocent.outcomes(20).values()) == {"accepted"}
    hostile.reset()


def test_idle_links_give_their_credit_back(gateway: GatewayProcess, watch: Watch) -> None:
    """Where another link wants it. What its owner sends before it hears of that is taken, and no more."""
    idle, late = peer_of(gateway, HOSTILE), peer_of(gateway, INNOCENT)
    assert [idle.publisher("orders", handle=number) for number in range(2)] == [100, 40]
    assert late.publisher("orders") == 40
    publish_until_credit(late, 80)  # its share is 100; what it has not used yet of it is told
    assert [credit_told(idle) for _ in range(2)] == [10, 10]
    idle.publish(*[frames.message()] * 100)
    assert set(idle.outcomes(100).values()) == {"accepted"}
    idle.publish(*[frames.message()] * 400)
    detached = idle.until("detach")
    assert detached.condition == "amqp:link:transfer-limit-exceeded"
    for peer in (idle, late):
        peer.reset()


def publish_until_credit(peer: Peer, wanted: int) -> None:
    credit = 0
    while credit < wanted:
        numbers = peer.publish(*[frames.message()] * 20)
        answered = -1
        while answered < numbers[-1]:
            [seen] = peer.frames(1)
            if seen.name == "flow":
                credit = int(seen.field(6))
            else:
                answered = seen.field(1) if seen.field(2) is None else seen.field(2)


def credit_told(peer: Peer) -> int:
    """The link-credit of the next FLOW."""
    seen = peer.expect("flow")
    return int(seen.field(6))


@pytest.mark.parametrize("user", ["greedy", "modest"])
def test_users_of_one_address_have_shares_of_their_own(gateway: GatewayProcess, watch: Watch, user: str) -> None:
    other = {"greedy": "modest", "modest": "greedy"}[user]
    first, second, innocent = (connect(gateway, PASSWORD, "PLAIN", user=name) for name in (user, user, other))
    links = [(first, second)[number % 2].create_sender("orders", name=f"{number}") for number in range(MOST)]
    with pytest.raises(LinkDetached, match=f"user {user} has 12 of 16 links"):
        second.create_sender("orders", name="one more")
    for sender in (innocent.create_sender("orders"), links[0]):
        assert sender.send(proton.Message(body="one")).remote_state == proton.Delivery.ACCEPTED
    for connection in (first, second, innocent):
        connection.close()


def test_a_user_that_is_alone_has_all(tmp_path: Path) -> None:
    """No other peer can come: nothing is left free for one."""
    write_users(tmp_path / "users.yaml", alice=[])
    security = {"sasl": ["PLAIN"], "users": "users.yaml", "plain_without_tls": True}
    gateway = start_gateway(tmp_path, embedded_realm(tmp_path), limits={"links": 8}, security=security)
    with closing(connect(gateway, PASSWORD, "PLAIN")) as connection:
        links = [connection.create_sender("orders", name=f"{number}") for number in range(8)]
        with pytest.raises(LinkDetached, match=r"all 8 links are taken; raise limits\.links"):
            connection.create_sender("orders", name="one more")
        assert links[-1].send(proton.Message(body="one")).remote_state == proton.Delivery.ACCEPTED
    assert gateway.stop() == 0, gateway.log()


ENDS: dict[str, Callable[[Transacting], None]] = {
    "close": lambda peer: peer.send(frames.close()),
    "reset": lambda peer: peer.reset(),
    "end": lambda peer: peer.send(frames.end()),
    "fault": lambda peer: peer.send(b"\xff" * 16),
}


@pytest.mark.parametrize("end", ENDS)
def test_all_is_given_back(gateway: GatewayProcess, watch: Watch, end: str) -> None:
    """However it ends, and though the octets of its end come together with more attaches."""
    for _ in range(3):
        peer = peer_of(gateway, HOSTILE)
        peer.control()
        peer.publisher("orders", handle=1)
        peer.declare()
        peer.declare()
        made(peer, 2)
        peer.send(*(frames.attach_receiver("orders", number, f"link-{number}") for number in range(10, 14)))
        ENDS[end](peer)
        until(partial(idle, watch), "what it had to be free")
        peer.close()


def idle(watch: Watch) -> bool:
    figures = standing(watch)
    return not any(figures[name] for name in COUNTS[1:])
