"""Connections that an address opens too fast wait for their turn, on real sockets: nothing that they say is lost, and
no other address notices them."""

from __future__ import annotations

import socket
import ssl
import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path

import pytest
from wsproto import ConnectionType, WSConnection
from wsproto.events import Ping, Request

from gateway.quotas.arrivals import BURST_S, WAIT_MAX_S
from gateway.server.entrance import READ_BYTES
from gateway.server.proxy_protocol import SIGNATURE
from gateway.server.websocket import EMPTY_FRAMES_PER_S
from tests.kit.patience import HANG_S, until
from tests.kit.processes.admin_pages import Watch
from tests.kit.processes.certificates import Authority
from tests.kit.processes.gateway import GatewayProcess, embedded_realm, make_gateway
from tests.kit.wire import frames
from tests.kit.wire.peer import Peer

RATE = 1
BURST, PLACES = BURST_S * RATE, WAIT_MAX_S * RATE
ADDRESSES = (f"127.0.1.{number}" for number in range(1, 255))  # each test has some of its own
ADMIN = {"listen": "http://127.0.0.1:0"}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    directory = tmp_path_factory.mktemp("entrance")
    pair = Authority(directory / "authority").sign("server", "/CN=localhost", "IP:127.0.0.1")
    tls = {"certificate": str(pair.certificate), "key": str(pair.key)}
    gateway = make_gateway(
        directory, embedded_realm(directory), limits={"connections_per_s": RATE}, admin=ADMIN, tls=tls
    )
    gateway.more = ["ws", "amqps"]
    gateway.start()
    yield gateway
    gateway.end_well()


@pytest.fixture
def watch(gateway: GatewayProcess) -> Iterator[Watch]:
    """Nothing waits, and nothing is left of what was there, when the test has closed its sockets."""
    watch = Watch.of(gateway)
    yield watch
    watch.until_zero("realmgate_connections", "realmgate_waiting_connections")


@pytest.fixture
def address() -> str:
    return next(ADDRESSES)


def waiting(watch: Watch) -> float:
    return watch.metrics()["realmgate_waiting_connections", ()]


def delayed(watch: Watch) -> float:
    return watch.metrics()["realmgate_delayed_connections_total", ()]


def connect(port: int, address: str) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), HANG_S, source_address=(address, 0))


def silent(gateway: GatewayProcess, address: str, count: int) -> list[socket.socket]:
    return [connect(gateway.port, address) for _ in range(count)]


def close(sockets: list[socket.socket]) -> None:
    for connection in sockets:
        connection.close()


def test_a_fleet_is_in_soon_and_no_other_address_waits(gateway: GatewayProcess, watch: Watch, address: str) -> None:
    """Each says at once who it is, as a client does, whether its turn has come or not."""
    before = delayed(watch)
    fleet = [Peer(gateway.port, begin=False, address=address) for _ in range(BURST + 3)]
    for peer in fleet:
        peer.send(frames.AMQP_HEADER, frames.open_(), frames.begin())
    with Peer(gateway.port, address=next(ADDRESSES)) as innocent:
        innocent.through("orders")
    assert delayed(watch) > before
    for peer in fleet:
        peer.expect("open")
        peer.expect("begin")
        peer.nothing_at_once()
        peer.close()
    line = f"connections wait: new connections of {address} wait for their turn"
    assert gateway.log().count(line) == 1


def floods(gateway: GatewayProcess, address: str) -> None:
    """Over WebSocket, after its login."""
    with connect(gateway.ports["ws"], address) as flood:
        client = WSConnection(ConnectionType.CLIENT)
        flood.sendall(client.send(Request(host="here", target="/", subprotocols=["amqp"])))
        client.receive_data(flood.recv(4096))
        flood.sendall(b"".join(client.send(Ping(b"")) for _ in range(2 * EMPTY_FRAMES_PER_S)))
        with suppress(ConnectionError):
            while flood.recv(65_536):
                pass


def breaks_the_protocol(gateway: GatewayProcess, address: str) -> None:
    with Peer(gateway.port, address=address) as peer:
        peer.send(b"\xff" * 16)
        peer.expect("close")


def hangs_up_before_it_opens(gateway: GatewayProcess, address: str) -> None:
    """When the gateway has done its part: as a guesser of passwords does."""
    with connect(gateway.port, address) as peer:
        peer.sendall(b"AMQP\x03\x01\x00\x00")
        assert peer.recv(8) == b"AMQP\x03\x01\x00\x00"


def hangs_up_in_the_handshake(gateway: GatewayProcess, address: str) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    sent = ssl.MemoryBIO()
    with suppress(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), sent).do_handshake()
    with connect(gateway.ports["amqps"], address) as peer:
        peer.sendall(sent.read())
        assert peer.recv(1)


MISDEEDS: list[Callable[[GatewayProcess, str], None]] = [
    floods,
    breaks_the_protocol,
    hangs_up_before_it_opens,
    hangs_up_in_the_handshake,
]


@pytest.mark.parametrize("misdeed", MISDEEDS)
def test_who_fails_waits(gateway: GatewayProcess, watch: Watch, misdeed: Callable[[GatewayProcess, str], None]) -> None:
    """Alone it might have four more at once. A machine that is slow gives it time: then another address tries."""
    before = delayed(watch)

    def next_one_waits() -> bool:
        address = next(ADDRESSES)
        misdeed(gateway, address)
        watch.until_zero("realmgate_connections")
        with Peer(gateway.port, address=address) as late:
            late.through("orders")
        return delayed(watch) > before

    until(next_one_waits, "it to pay for its fault")


def test_a_look_at_the_port_is_no_fault(gateway: GatewayProcess, watch: Watch, address: str) -> None:
    before = delayed(watch)
    close(silent(gateway, address, BURST - 1))
    watch.until_zero("realmgate_connections")
    with Peer(gateway.port, address=address) as peer:
        peer.through("orders")
    assert delayed(watch) == before


def test_the_queue_has_an_end(gateway: GatewayProcess, watch: Watch, address: str) -> None:
    """What hangs up while it waits takes no place and no work; what is too much is closed, and said."""
    there = silent(gateway, address, BURST + PLACES)
    until(lambda: was_refused(gateway, address, there), "the queue to be full")
    assert f"peer fault connection-rate: {address} was refused: {PLACES} connections of its address" in gateway.log()
    warnings = watch.health()["warnings"]
    assert any(f"of them from {address}: limits.connections_per_s" in line for line in warnings), warnings
    first = number_of(gateway, next(ADDRESSES))
    close(there)
    watch.until(lambda: waiting(watch) == 0)
    assert number_of(gateway, address) - first < PLACES // 2, "those that hung up were not made"


def number_of(gateway: GatewayProcess, address: str) -> int:
    """Of a new connection: how many were made before it."""
    with Peer(gateway.port, address=address) as peer:
        container = peer.container
    return int(gateway.log().split(f" of user 'anonymous', container '{container}'")[0].rsplit(".", 1)[1])


def was_refused(gateway: GatewayProcess, address: str, there: list[socket.socket]) -> bool:
    """One more comes."""
    there += silent(gateway, address, 1)
    return f"connection-rate: {address} was refused" in gateway.log()


def test_one_that_waits_is_not_read_for_ever(gateway: GatewayProcess, watch: Watch, address: str) -> None:
    """What it has sent before its turn is heard, as far as it was read, and then the rest."""
    there, before = silent(gateway, address, BURST + 3), delayed(watch)
    session = frames.begin(1) + frames.end(1)
    count = 2 * READ_BYTES // len(session)
    with Peer(gateway.port, begin=False, address=address) as late:
        late.send(frames.AMQP_HEADER, frames.open_(), session * count)
        watch.until(lambda: delayed(watch) > before)
        late.expect("open")
        assert sorted(seen.name for seen in late.frames(2 * count)) == ["begin"] * count + ["end"] * count
    close(there)


def test_over_tls_the_handshake_waits(gateway: GatewayProcess, watch: Watch, address: str) -> None:
    there, before = silent(gateway, address, BURST + 1), delayed(watch)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with context.wrap_socket(connect(gateway.ports["amqps"], address)) as peer:
        assert delayed(watch) > before
        peer.sendall(frames.AMQP_HEADER + frames.open_())
        assert peer.recv(8) == frames.AMQP_HEADER
    close(there)


def test_behind_a_proxy_each_client_has_its_own(tmp_path: Path) -> None:
    def of(client: str) -> bytes:
        body = ip_address(client).packed + ip_address("192.0.2.1").packed + struct.pack(">HH", 40_000, 5672)
        return SIGNATURE + struct.pack(">BBH", 0x21, 0x11, len(body)) + body

    gateway = make_gateway(tmp_path, embedded_realm(tmp_path), limits={"connections_per_s": RATE}, admin=ADMIN)
    gateway.proxies = ["127.0.0.0/8"]
    gateway.start()
    watch = Watch.of(gateway)
    fleet = [Peer(gateway.port, preface=of("198.51.100.7")) for _ in range(BURST)]
    with Peer(gateway.port, begin=False, preface=of("198.51.100.7")) as waits:
        waits.send(frames.AMQP_HEADER, frames.open_(), frames.begin())
        others = [Peer(gateway.port, preface=of(f"198.51.100.{number}")) for number in range(8, 20)]
        assert delayed(watch) == 1
        waits.expect("open")
    for peer in fleet + others:
        peer.close()
    assert "new connections of 198.51.100.7 wait for their turn" in gateway.log()
    gateway.end_well()
