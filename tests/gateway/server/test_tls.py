"""TLS on a real gateway: who is offered what, EXTERNAL, certificates that change, and handshakes that do not end."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import proton
import pytest
from proton.utils import BlockingConnection

from gateway.auth.sasl import AMQP_HEADER, SASL_HEADER
from tests.gateway.auth.sasl_frames import frame, init
from tests.kit.patience import HANG_S, until
from tests.kit.processes.admin_pages import Watch
from tests.kit.processes.certificates import Authority, Pair
from tests.kit.processes.gateway import embedded_realm, make_gateway
from tests.kit.wire.logins import PASSWORD, read_frame, write_users
from transformers.codec import Described, decode

MECHANISMS = ["EXTERNAL", "SCRAM-SHA-256", "PLAIN"]
FEED = "/C=DE/O=Example, Inc/CN=feed"


class World:
    """A gateway with TLS, the authority that it trusts, and certificates."""

    def __init__(self, directory: Path) -> None:
        self.ours, self.others = Authority(directory / "ours"), Authority(directory / "others")
        self.server = self.ours.sign("server", "/CN=localhost", "IP:127.0.0.1")
        self.feed = self.ours.sign("feed", FEED)
        self.known_by_name = self.ours.sign("alice", "/CN=another", "DNS:desk-7.example,email:alice@example.org")
        self.unknown = self.ours.sign("unknown", "/CN=unknown")
        self.foreign = self.others.sign("feed", FEED)
        users = directory / "users.yaml"
        write_users(users, bob=["ops"])
        certificate = '"subject:CN=feed,O=Example\\\\, Inc,C=DE"'
        with users.open("a") as file:
            file.write(f"  feed: {{certificates: [{certificate}], groups: [feeds]}}\n")
            file.write('  alice: {certificates: ["email:alice@example.org"]}\n')
        self.gateway = make_gateway(
            directory,
            embedded_realm(directory),
            admin={"listen": "http://127.0.0.1:0"},
            tls={
                "certificate": str(self.server.certificate),
                "key": str(self.server.key),
                "client_ca": str(self.ours.certificate),
            },
            security={"sasl": MECHANISMS, "users": "users.yaml"},
            limits={"open_timeout_ms": 3000, "half_open_connections": 20},
        )
        self.gateway.more = ["amqps"]
        self.gateway.start()

    def context(self, pair: Pair | None = None) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(self.ours.certificate))
        if pair is not None:
            context.load_cert_chain(pair.certificate, pair.key)
        return context

    def connect(self, pair: Pair | None = None) -> ssl.SSLSocket:
        plain = socket.create_connection(("127.0.0.1", self.gateway.ports["amqps"]), timeout=HANG_S)
        return self.context(pair).wrap_socket(plain, server_hostname="127.0.0.1")

    def offered(self, pair: Pair | None = None) -> tuple[ssl.SSLSocket, list[str]]:
        peer = self.connect(pair)
        peer.sendall(SASL_HEADER)
        assert take(peer, 8) == SASL_HEADER
        return peer, [*read(peer).value[0].items]

    def health(self) -> dict[str, Any]:
        return Watch.of(self.gateway).health()

    def until_health(self, key: str, value: object) -> dict[str, Any]:
        deadline = time.monotonic() + HANG_S
        while True:
            document = self.health()
            if document["tls"][key] == value:
                return document
            assert time.monotonic() < deadline, document["tls"]
            time.sleep(0.05)


def take(peer: ssl.SSLSocket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        piece = peer.recv(count - len(data))
        assert piece, f"the gateway closed after {data!r}"
        data += piece
    return data


def read(peer: ssl.SSLSocket) -> Described:
    head = take(peer, 8)
    value = decode(take(peer, int.from_bytes(head[:4], "big") - 8))[0]
    assert isinstance(value, Described)
    return value


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    world = World(tmp_path_factory.mktemp("tls"))
    yield world
    world.gateway.end_well()


def proton_connection(world: World, pair: Pair | None, **login: Any) -> BlockingConnection:
    domain = proton.SSLDomain(proton.SSLDomain.MODE_CLIENT)
    domain.set_trusted_ca_db(str(world.ours.certificate))
    domain.set_peer_authentication(proton.SSLDomain.VERIFY_PEER)
    if pair is not None:
        domain.set_credentials(str(pair.certificate), str(pair.key), None)
    return BlockingConnection(
        f"amqps://127.0.0.1:{world.gateway.ports['amqps']}", timeout=HANG_S, ssl_domain=domain, reconnect=False, **login
    )


def test_protons_client_publishes_and_consumes_as_its_certificate_says(world: World) -> None:
    world.gateway.command("node", "create", "of-feeds", "--kind", "queue")
    world.gateway.command("acl", "grant", "group:feeds", "publish,subscribe", "--node", "of-feeds")
    connection = proton_connection(world, world.feed, allowed_mechs="EXTERNAL")
    sender, receiver = connection.create_sender("of-feeds"), connection.create_receiver("of-feeds", credit=10)
    body = "x" * 300_000  # many records
    for _ in range(3):
        assert sender.send(proton.Message(body=body, durable=True)).remote_state == proton.Delivery.ACCEPTED
        assert receiver.receive(timeout=HANG_S).body == body
        receiver.accept()
    connection.close()
    other = proton_connection(world, world.known_by_name, allowed_mechs="EXTERNAL")
    with pytest.raises(proton.utils.LinkDetached, match="unauthorized"):
        other.create_sender("of-feeds")
    other.close()


def test_protons_client_logs_in_with_plain_inside_tls(world: World) -> None:
    connection = proton_connection(world, None, user="bob", password=PASSWORD, allowed_mechs="PLAIN")
    assert connection.create_sender("of-bob").send(proton.Message(body="one")).remote_state == proton.Delivery.ACCEPTED
    connection.close()


def test_who_is_offered_what(world: World) -> None:
    for pair, expected in ((None, MECHANISMS[1:]), (world.feed, MECHANISMS), (world.unknown, MECHANISMS)):
        peer, offered = world.offered(pair)
        assert offered == expected
        peer.close()
    with socket.create_connection(("127.0.0.1", world.gateway.port), timeout=HANG_S) as plain:
        plain.sendall(SASL_HEADER)
        assert plain.recv(8, socket.MSG_WAITALL) == SASL_HEADER
        assert [*read_frame(plain).value[0].items] == ["SCRAM-SHA-256"]
        plain.sendall(init("PLAIN", f"\0bob\0{PASSWORD}".encode()))
        assert read_frame(plain).value[0] == 1


@pytest.mark.parametrize(
    ("who", "response", "code"),
    [("feed", b"", 0), ("feed", b"feed", 0), ("feed", None, 0), ("feed", b"bob", 1), ("known_by_name", b"alice", 0),
     ("unknown", b"", 1), ("unknown", b"feed", 1)],
)  # fmt: skip
def test_external(world: World, who: str, response: bytes | None, code: int) -> None:
    peer, _ = world.offered(getattr(world, who))
    with peer:
        peer.sendall(init("EXTERNAL", response) + AMQP_HEADER)
        assert read(peer).value[0] == code
        if code == 0:
            assert take(peer, 8) == AMQP_HEADER
        else:
            assert peer.recv(1) == b""


def test_external_without_a_certificate_is_refused(world: World) -> None:
    peer, _ = world.offered(None)
    with peer:
        peer.sendall(init("EXTERNAL", b"feed"))
        assert read(peer).value[0] == 1


def test_a_certificate_of_another_authority_is_refused(world: World) -> None:
    context = world.context(world.foreign)
    context.maximum_version = ssl.TLSVersion.TLSv1_2  # so that it is the handshake that fails
    plain = socket.create_connection(("127.0.0.1", world.gateway.ports["amqps"]), timeout=HANG_S)
    with plain, pytest.raises(ssl.SSLError, match=r"(?i)unknown.ca"):
        context.wrap_socket(plain, server_hostname="127.0.0.1")
    world.gateway.await_log("peer fault tls: ")


def test_octets_one_by_one(world: World) -> None:
    """Records cut anywhere."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = world.context().wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
    with socket.create_connection(("127.0.0.1", world.gateway.ports["amqps"]), timeout=HANG_S) as peer:
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

        def send() -> None:
            octets = outgoing.read()
            for at in range(len(octets)):
                peer.sendall(octets[at : at + 1])

        while True:
            try:
                tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                send()
                incoming.write(peer.recv(65_536))
        tls.write(SASL_HEADER)
        send()
        while True:
            try:
                assert tls.read(8) == SASL_HEADER
                break
            except ssl.SSLWantReadError:
                incoming.write(peer.recv(65_536))


def test_handshakes_that_are_none_or_do_not_end(world: World) -> None:
    """All at once: each is cut off in time."""
    peers = []
    for octets in (b"", AMQP_HEADER, b"\x16\x03\x01\x00\xff\x01"):
        peers.append(socket.create_connection(("127.0.0.1", world.gateway.ports["amqps"]), timeout=HANG_S))
        peers[-1].sendall(octets)
    for peer in peers:
        with peer, contextlib.suppress(ConnectionResetError):
            while peer.recv(4096):
                pass


def test_handshakes_are_half_open_connections(world: World) -> None:
    """So the oldest of them gives way to the next peer."""
    silent = [socket.create_connection(("127.0.0.1", world.gateway.ports["amqps"]), timeout=HANG_S) for _ in range(20)]
    world.offered(None)[0].close()
    with contextlib.suppress(ConnectionResetError):
        assert silent[0].recv(1) == b""
    for peer in silent:
        peer.close()


def test_an_end_is_announced(world: World) -> None:
    """With TLS's own word, so that it is no cut."""
    peer, _ = world.offered(None)
    with peer:
        peer.sendall(frame(Described(0x44, [0])))
        assert peer.recv(1) == b""
        assert peer.unwrap() is not None


def test_certificates_change_while_serving(world: World) -> None:
    served = world.server.certificate.read_bytes(), world.server.key.read_bytes()
    connection = proton_connection(world, None, user="bob", password=PASSWORD, allowed_mechs="PLAIN")
    sender = connection.create_sender("of-bob")
    before = world.connect()
    old = before.getpeercert(True)
    before.close()

    renewed = world.ours.sign("renewed", "/CN=localhost", "IP:127.0.0.1")
    read_so_far = world.health()["tls"]["read"]
    for source, target in ((renewed.key, world.server.key), (renewed.certificate, world.server.certificate)):
        source.replace(target)
    world.until_health("read", read_so_far + 1)
    with world.connect() as after:
        new = after.getpeercert(True)
    assert new is not None and new != old

    world.server.key.write_text("no key at all\n")
    document = world.until_health("refused", 1)
    assert "cannot be used" in document["tls"]["problem"]
    assert [(problem["kind"], problem["detail"]) for problem in document["problems"]] == [
        ("certificates-refused", document["tls"]["problem"])
    ]
    with world.connect() as still:
        assert still.getpeercert(True) == new
    world.gateway.await_log("the previous ones stay active")

    world.server.certificate.write_bytes(served[0])
    world.server.key.write_bytes(served[1])
    os.kill(world.gateway.pid, signal.SIGHUP)
    world.until_health("problem", "")
    with world.connect() as again:
        assert again.getpeercert(True) == old
    assert sender.send(proton.Message(body="one")).remote_state == proton.Delivery.ACCEPTED  # was there all the time
    connection.close()


def test_key_updates_without_end_are_refused(world: World, tmp_path: Path) -> None:
    """Each is work before any login, and OpenSSL has no limit: `openssl s_client` sends one for a line `k`."""
    patient = {**world.gateway.settings, "limits": {"open_timeout_ms": 3_600_000}}
    gateway = make_gateway(tmp_path, embedded_realm(tmp_path), **{name: patient[name] for name in ("tls", "limits")})
    gateway.more = ["amqps"]
    gateway.start()
    address = f"127.0.0.1:{gateway.ports['amqps']}"
    command = ["openssl", "s_client", "-connect", address, "-tls1_3", "-CAfile", str(world.ours.certificate)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, bufsize=0
    ) as client:
        assert client.stdin is not None

        def updates() -> bool:
            """Several, and whether it is ended for that."""
            with contextlib.suppress(BrokenPipeError):
                for _ in range(50):
                    client.stdin.write(b"k\n")  # type: ignore[union-attr]
                    time.sleep(0.0005)  # it looks at the first letter of what it reads at once
            return client.poll() is not None

        until(updates, "the end of a connection that sends nothing but key updates")
    assert "records without data" in gateway.log()
    gateway.end_well()
