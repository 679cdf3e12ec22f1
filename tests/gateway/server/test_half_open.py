"""Sockets that say nothing keep no peer out: the oldest of them is closed, first of the address that has most."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.config.limits import Limits
from gateway.server.half_open import HalfOpenSockets
from tests.kit.patience import HANG_S, until
from tests.kit.processes.admin_pages import Watch
from tests.kit.processes.gateway import GatewayProcess, embedded_realm, start_gateway
from tests.kit.wire import frames
from tests.kit.wire.peer import Peer

HOSTILE, INNOCENT, SLOW = "127.0.0.2", "127.0.0.1", "127.0.0.3"
PLACES, SAFE, CONNECTIONS = 20, 5, 24


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    directory = tmp_path_factory.mktemp("half-open")
    limits = {
        "connections": CONNECTIONS,
        "half_open_connections": PLACES,
        "half_open_per_address": SAFE,
        "open_timeout_ms": 600_000,
    }
    admin = {"listen": "http://127.0.0.1:0"}
    gateway = start_gateway(directory, embedded_realm(directory), limits=limits, admin=admin)
    yield gateway
    gateway.end_well()


@pytest.fixture
def watch(gateway: GatewayProcess) -> Iterator[Watch]:
    """Every count is back at zero when the test has closed its sockets."""
    watch = Watch.of(gateway)
    yield watch
    watch.until_zero("realmgate_connections")
    assert watch.metrics()["realmgate_half_open_connections", ()] == 0


def silent(gateway: GatewayProcess, address: str, count: int) -> list[socket.socket]:
    where = ("127.0.0.1", gateway.port)
    return [socket.create_connection(where, HANG_S, source_address=(address, 0)) for _ in range(count)]


def was_closed(peer: socket.socket) -> bool:
    try:
        return peer.recv(1) == b""
    except ConnectionResetError:
        return True


def opens(peer: socket.socket) -> bool:
    """It says at last who it is, and is answered."""
    peer.sendall(frames.AMQP_HEADER + frames.open_("slow"))
    return peer.recv(8, socket.MSG_WAITALL) == frames.AMQP_HEADER


def close(sockets: list[socket.socket]) -> None:
    for client in sockets:
        client.close()


def faults(watch: Watch, fault: str) -> float:
    return watch.metrics().get(("realmgate_peer_faults_total", (fault,)), 0.0)


def test_silent_sockets_of_one_address_keep_no_other_address_out(gateway: GatewayProcess, watch: Watch) -> None:
    before, slow = faults(watch, "half-open"), silent(gateway, SLOW, SAFE)
    hostile = silent(gateway, HOSTILE, 3 * PLACES)
    with Peer(gateway.port, address=INNOCENT) as innocent:
        innocent.through("orders")
        gone = SAFE + 3 * PLACES + 1 - PLACES
        assert faults(watch, "half-open") - before == gone
        assert all(was_closed(client) for client in hostile[:gone])
        assert opens(hostile[-1]), "the newest is heard"
        assert all(opens(client) for client in slow), "they came first, and their address had no more than is safe"
    close(slow + hostile)
    assert f"peer fault half-open: a connection of {HOSTILE} was closed before its open frame" in gateway.log()


def test_nor_another_peer_of_their_own_address(gateway: GatewayProcess, watch: Watch) -> None:
    hostile = silent(gateway, HOSTILE, 3 * PLACES)
    with Peer(gateway.port, address=HOSTILE) as innocent:
        innocent.through("orders")
    close(hostile)


def test_they_give_way_where_all_connections_are_taken(gateway: GatewayProcess, watch: Watch) -> None:
    """What is open stays: beyond it the newest is refused."""
    hostile = silent(gateway, HOSTILE, PLACES)
    peers = [Peer(gateway.port, address=f"127.0.0.{9 + at % 8}") for at in range(CONNECTIONS)]
    assert all(was_closed(client) for client in hostile)
    before = faults(watch, "too-many-connections")
    assert all(was_closed(client) for client in silent(gateway, INNOCENT, 1))
    assert faults(watch, "too-many-connections") == before + 1
    peers.pop().close()
    watch.until(lambda: watch.metrics()["realmgate_connections", ()] < CONNECTIONS)
    peers.append(Peer(gateway.port, address=INNOCENT))
    for peer in peers:
        peer.nothing_at_once()
        peer.close()
    close(hostile)


def test_a_reset_frees_its_place(gateway: GatewayProcess, watch: Watch) -> None:
    for _ in range(3):
        peers = [Peer(gateway.port, begin=False, address=HOSTILE) for _ in range(PLACES)]
        for peer in peers:
            peer.reset()
    until(lambda: watch.metrics()["realmgate_half_open_connections", ()] == 0, "their places to be free")


class Places:
    """What the half-open sockets see of a gateway."""

    def __init__(self, places: int, safe: int, opened: int) -> None:
        self.limits = Limits(half_open_connections=places, half_open_per_address=safe, connections=places + opened)
        self.opened = opened
        self.told: list[tuple[str, str]] = []

    def turn_away(self, what: str, fault: str, detail: str, who: str, user: str, address: str) -> None:
        self.told.append((fault, address))


class Socket:
    def __init__(self) -> None:
        self.aborted = False

    def abort(self) -> None:
        self.aborted = True


@given(st.integers(1, 8), st.integers(1, 4), st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=60))
@settings(max_examples=150, deadline=None)
def test_whatever_comes_and_goes(places: int, safe: int, steps: list[tuple[int, bool]]) -> None:
    """A list of plain sockets beside it: who goes is the oldest of who has most, and no count is left behind."""
    gateway = Places(places, safe, opened=2)
    half_open = HalfOpenSockets(gateway)  # type: ignore[arg-type]
    there: list[tuple[Socket, int]] = []
    for number, comes in steps:
        if not comes:
            gone = [there.pop(number % len(there))] if there else []
            for peer, _ in gone + gone:  # a second time does nothing
                half_open.leave(peer)
            continue
        sockets = {at: [peer for peer, its in there if its == at] for at in range(4)}
        most = max(sockets, key=lambda at: len(sockets[at]))
        come = Socket()
        assert half_open.enter(come, f"10.0.0.{number}")
        if len(there) == places:
            [gone_now] = [pair for pair in there if pair[0].aborted]
            if len(sockets[most]) > safe:
                assert len(sockets[gone_now[1]]) == len(sockets[most]) and gone_now[0] is sockets[gone_now[1]][0]
            else:
                assert gone_now is there[0]
            there.remove(gone_now)
        there.append((come, number))
        assert len(half_open) == len(there) <= places and not any(peer.aborted for peer, _ in there)
    for peer, _ in there:
        half_open.leave(peer)
    assert len(half_open) == 0 and not half_open._sockets and not half_open._crowded


def test_an_address_of_ipv6_is_its_network() -> None:
    gateway = Places(4, 1, opened=0)
    half_open, sockets = HalfOpenSockets(gateway), [Socket() for _ in range(6)]  # type: ignore[arg-type]
    assert half_open.enter(sockets[0], "10.0.0.1")
    for at, peer in enumerate(sockets[1:], 1):
        assert half_open.enter(peer, f"2001:db8::{at}")
    assert [peer.aborted for peer in sockets] == [False, True, True, False, False, False]
    half_open.abort()
    assert all(peer.aborted for peer in sockets) and len(half_open) == 0
