"""The PROXY protocol on real sockets: whose connection it is, and what becomes of octets that are no header."""

from __future__ import annotations

import json
import socket
import ssl
import struct
from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.auth.sasl import AMQP_HEADER, SASL_HEADER
from gateway.cli.client.peer_address import AddressProblem, from_settings
from gateway.config.settings import SettingsProblems, load_settings
from gateway.server.proxy_protocol import LENGTH_MAX, SIGNATURE, Header, HeaderFault, read_header
from tests.gateway.auth.sasl_frames import init
from tests.kit.patience import HANG_S, until
from tests.kit.processes.admin_pages import Watch
from tests.kit.processes.certificates import Authority
from tests.kit.processes.gateway import GatewayProcess, embedded_realm, make_gateway
from tests.kit.wire import frames
from tests.kit.wire.logins import PASSWORD, read_frame, write_users
from tests.kit.wire.peer import Peer

PROXY, STRANGER = "127.0.0.1", "127.0.0.9"
TCP4, TCP6, UDP4, UNIX, UNSPECIFIED = 0x11, 0x21, 0x12, 0x31, 0x00
TLVS = b"\x03\x00\x04\xca\xfe\xba\xbe" + b"\xe0\x00\x00" + b"\x04\x00\x10" + b"\x00" * 16


def header(command: int = 0x21, family: int = TCP4, body: bytes = b"", length: int | None = None) -> bytes:
    return SIGNATURE + struct.pack(">BBH", command, family, len(body) if length is None else length) + body


def of(client: str, port: int = 40_000, tlvs: bytes = b"") -> bytes:
    """The header of that client."""
    address = ip_address(client)
    there = ip_address("192.0.2.1" if address.version == 4 else "2001:db8::ffff")
    body = address.packed + there.packed + struct.pack(">HH", port, 5672)
    return header(family=TCP4 if address.version == 4 else TCP6, body=body + tlvs)


CLIENT = of("198.51.100.7")
WRONG = {
    "AMQP at once": AMQP_HEADER + frames.open_(),
    "one octet": b"A",
    "version 1 of it": b"PROXY TCP4 198.51.100.7 192.0.2.1 40000 5672\r\n",
    "a signature that ends wrongly": SIGNATURE[:-1] + b"\r",
    "another version": header(command=0x11, body=CLIENT[16:]),
    "another command": header(command=0x22, body=CLIENT[16:]),
    "UDP": header(family=UDP4, body=CLIENT[16:]),
    "a socket of Unix": header(family=UNIX, body=b"\x00" * 216),
    "no family": header(family=UNSPECIFIED),
    "addresses cut short": header(body=CLIENT[16:-1]),
    "addresses of IPv4 for IPv6": header(family=TCP6, body=CLIENT[16:]),
    "too long": header(length=LENGTH_MAX + 1),
    "too long, of the proxy's own": header(command=0x20, length=0xFFFF),
}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    directory = tmp_path_factory.mktemp("proxied")
    pair = Authority(directory / "authority").sign("server", "/CN=localhost", "IP:127.0.0.1")
    write_users(directory / "users.yaml", alice=[])
    gateway = make_gateway(
        directory,
        embedded_realm(directory),
        admin={"listen": "http://127.0.0.1:0"},
        tls={"certificate": str(pair.certificate), "key": str(pair.key)},
        security={"sasl": ["ANONYMOUS", "PLAIN"], "users": "users.yaml", "plain_without_tls": True},
        limits={"half_open_connections": 12, "half_open_per_address": 3, "open_timeout_ms": 60_000},
    )
    gateway.more, gateway.proxies = ["amqps", "wss"], [f"{PROXY}/32", "2001:db8::/32"]
    gateway.start()
    yield gateway
    gateway.end_well()


@pytest.fixture
def watch(gateway: GatewayProcess) -> Iterator[Watch]:
    """Every count is back at zero when the test has closed its sockets."""
    watch = Watch.of(gateway)
    yield watch
    watch.until_zero("realmgate_connections")


def addresses(watch: Watch) -> list[str]:
    """Of the connections that there are, in the order of their coming."""
    return [entry["address"] for entry in json.loads(watch.ask("/api/connections")[2])["gateways"][0]["connections"]]


def faults(watch: Watch) -> float:
    return watch.metrics().get(("realmgate_peer_faults_total", ("proxy-header",)), 0.0)


def connected(gateway: GatewayProcess, octets: bytes = b"", address: str = PROXY) -> socket.socket:
    peer = socket.create_connection(("127.0.0.1", gateway.port), HANG_S, source_address=(address, 0))
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    peer.sendall(octets)
    return peer


def was_closed(peer: socket.socket) -> bool:
    """Without a word."""
    with peer:
        try:
            return peer.recv(1) == b""
        except ConnectionResetError:
            return True


@pytest.mark.parametrize(
    ("preface", "address"),
    [
        (CLIENT, "198.51.100.7"),
        (of("198.51.100.8", tlvs=TLVS), "198.51.100.8"),
        (of("198.51.100.9", tlvs=b"\xee" * (LENGTH_MAX - 12)), "198.51.100.9"),
        (of("2001:db8::17", tlvs=TLVS), "2001:db8::17"),
        (of("::ffff:198.51.100.7"), "198.51.100.7"),
        (header(command=0x20, family=UNSPECIFIED), PROXY),
        (header(command=0x20, family=TCP4, body=CLIENT[16:] + TLVS), PROXY),
    ],
    ids=["IPv4", "TLVs", "as long as may be", "IPv6", "IPv4 in IPv6", "the proxy's own", "its own, with more"],
)
def test_whose_connection_it_is(gateway: GatewayProcess, watch: Watch, preface: bytes, address: str) -> None:
    with Peer(gateway.port, preface=preface) as peer:
        peer.through("orders")
        assert addresses(watch) == [address]
        assert f"from {address}" in gateway.log()


def test_octet_by_octet(gateway: GatewayProcess, watch: Watch) -> None:
    with connected(gateway) as peer:
        for octet in of("198.51.100.20", tlvs=TLVS) + AMQP_HEADER:
            peer.send(bytes([octet]))
        assert peer.recv(8, socket.MSG_WAITALL) == AMQP_HEADER
        assert addresses(watch) == ["198.51.100.20"]


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_a_header_is_read_wherever_it_is_cut(data: st.DataObject) -> None:
    """A part of a header is never refused and never read as the whole; what follows is not looked at."""
    client = str(data.draw(st.ip_addresses(v=4) | st.ip_addresses(network="2001:db8::/32")))
    port, tlvs = data.draw(st.integers(0, 65_535)), data.draw(st.binary(max_size=40))
    whole = of(client, port, tlvs)
    assert all(read_header(whole[:cut]) is None for cut in range(len(whole)))
    assert read_header(whole + data.draw(st.binary(max_size=9))) == Header((client, port), len(whole))


@given(st.integers(0, 15), st.integers(0, 255), st.binary(max_size=4))
@settings(max_examples=100, deadline=None)
def test_whatever_comes_is_read_or_refused(at: int, octet: int, more: bytes) -> None:
    changed = bytearray(CLIENT + more)
    changed[at] = octet
    try:
        header = read_header(bytes(changed))
    except HeaderFault:
        return
    assert header is None or header.size <= len(changed)


@pytest.mark.parametrize("octets", WRONG.values(), ids=WRONG)
def test_what_is_no_header_closes_the_connection(gateway: GatewayProcess, watch: Watch, octets: bytes) -> None:
    """Its neighbour is served. Nothing behind it is read."""
    before = faults(watch)
    with Peer(gateway.port, preface=CLIENT) as innocent:
        assert was_closed(connected(gateway, octets))
        assert faults(watch) == before + 1
        assert addresses(watch) == ["198.51.100.7"]
        innocent.through("orders")


def test_a_header_that_does_not_end_closes_the_connection_in_time(gateway: GatewayProcess, watch: Watch) -> None:
    before, slow = faults(watch), [connected(gateway, part) for part in (b"", CLIENT[:15], CLIENT[:-1])]
    with Peer(gateway.port, preface=CLIENT) as innocent:
        innocent.through("orders")
        assert all(was_closed(client) for client in slow)
        assert faults(watch) == before + 3 and "no whole header within 3 s" in gateway.log()
        innocent.nothing_at_once()


def test_only_proxies_are_believed(gateway: GatewayProcess, watch: Watch) -> None:
    before = faults(watch)
    assert was_closed(connected(gateway, CLIENT + AMQP_HEADER, STRANGER))
    assert faults(watch) == before + 1
    assert f"a connection of {STRANGER} was closed: it is none of the listener's proxies" in gateway.log()


def test_silent_clients_of_one_address_keep_no_other_out(gateway: GatewayProcess, watch: Watch) -> None:
    """Though all come from the proxy's."""
    slow = [connected(gateway, of("198.51.100.30")) for _ in range(3)]
    hostile = [connected(gateway, CLIENT) for _ in range(40)]
    with Peer(gateway.port, preface=of("198.51.100.31")) as innocent:
        innocent.through("orders")
        assert was_closed(hostile[0])
        for client in slow:
            client.sendall(AMQP_HEADER + frames.open_("slow"))
            assert client.recv(8, socket.MSG_WAITALL) == AMQP_HEADER
    for client in slow + hostile:
        client.close()


def test_logins_are_throttled_by_the_clients_address(gateway: GatewayProcess, watch: Watch) -> None:
    for client in ("198.51.100.40", "198.51.100.41"):
        with connected(gateway, of(client) + SASL_HEADER + init("PLAIN", b"\0alice\0wrong")) as peer:
            assert peer.recv(8, socket.MSG_WAITALL) == SASL_HEADER
            read_frame(peer)
            assert read_frame(peer).value[0] == 1
        until(lambda: f"user 'alice' from {client}" in gateway.log(), "its line")  # noqa: B023
    with connected(gateway, of("198.51.100.42") + SASL_HEADER) as peer:
        peer.sendall(init("PLAIN", f"\0alice\0{PASSWORD}".encode()))
        assert peer.recv(8, socket.MSG_WAITALL) == SASL_HEADER
        read_frame(peer)
        assert read_frame(peer).value[0] == 0


@pytest.mark.parametrize("scheme", ["amqps", "wss"])
def test_it_stands_before_tls(gateway: GatewayProcess, watch: Watch, scheme: str) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    plain = socket.create_connection(("127.0.0.1", gateway.ports[scheme]), HANG_S)
    plain.sendall(of("198.51.100.50"))
    with context.wrap_socket(plain) as peer:
        assert peer.version() in ("TLSv1.2", "TLSv1.3")
        assert addresses(watch) == ["198.51.100.50"]
        if scheme == "amqps":
            peer.sendall(AMQP_HEADER)
            assert peer.recv(8) == AMQP_HEADER
    before = faults(watch)
    bare = socket.create_connection(("127.0.0.1", gateway.ports[scheme]), HANG_S)
    with pytest.raises((ssl.SSLError, OSError)):
        context.wrap_socket(bare)
    assert faults(watch) == before + 1


AMQP = "address: 'amqp://127.0.0.1:5672'"
REFUSED = {
    f"{{{AMQP}, proxies: [10.0.0.0/8]}}": "listen: proxy_protocol is missing",
    f"{{{AMQP}, proxy_protocol: true}}": "listen: proxies is missing",
    "{proxy_protocol: true, proxies: [10.0.0.0/8]}": "listen: address is missing",
    f"{{{AMQP}, proxy_protocol: false, proxies: [10.0.0.0/8]}}": "listen: proxy_protocol is false",
    f"{{{AMQP}, proxy_protocol: true, proxies: []}}": "listen.proxies is empty",
    f"{{{AMQP}, proxy_protocol: true, proxies: [10.0.0.1/8]}}": "10.0.0.1/8 has host bits set",
    f"{{{AMQP}, proxy_protocol: true, proxies: [lb.example]}}": "is no network",
    "{address: 'http://127.0.0.1:5672', proxy_protocol: true, proxies: [10.0.0.1]}": "is no amqp://",
    f"{{{AMQP}, proxy: true, proxy_protocol: true, proxies: [10.0.0.1]}}": "unknown key proxy",
    "[amqp]": "listen must be an address or a mapping",
}


@pytest.mark.parametrize(("written", "words"), REFUSED.items())
def test_what_may_be_written(tmp_path: Path, written: str, words: str) -> None:
    file = tmp_path / "realmgate.yaml"
    file.write_text(f"realm: {{kind: embedded}}\nlisten:\n  - amqp://127.0.0.1:5673\n  - {written}\n")
    with pytest.raises(SettingsProblems) as problems:
        load_settings(file)
    assert words in str(problems.value) and ":4: " in str(problems.value)


def test_commands_connect_where_no_proxy_is_needed(tmp_path: Path) -> None:
    file, proxied = tmp_path / "realmgate.yaml", f"{{{AMQP}, proxy_protocol: true, proxies: [10.0.0.1]}}"
    file.write_text(f"realm: {{kind: embedded}}\nlisten:\n  - {proxied}\n  - amqp://127.0.0.1:5673\n")
    assert from_settings(load_settings(file), {}, None).url == "amqp://127.0.0.1:5673"
    file.write_text(f"realm: {{kind: embedded}}\nlisten:\n  - {proxied}\n")
    with pytest.raises(AddressProblem, match="for WebSocket and for proxies only"):
        from_settings(load_settings(file), {}, None)
