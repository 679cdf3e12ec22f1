"""WebSocket on a real gateway, frame by frame: who is let in, how AMQP is cut, and what ends it."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    AcceptConnection,
    BytesMessage,
    CloseConnection,
    Event,
    Ping,
    Pong,
    RejectConnection,
    Request,
    TextMessage,
)

from gateway.auth.sasl import AMQP_HEADER, SASL_HEADER
from tests.kit.patience import HANG_S
from tests.kit.processes.gateway import GatewayProcess, embedded_realm, make_gateway
from tests.kit.wire import frames


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    directory: Path = tmp_path_factory.mktemp("websocket")
    security = {"websocket_origins": ["https://app.example"]}
    gateway = make_gateway(directory, embedded_realm(directory), security=security, limits={"open_timeout_ms": 2000})
    gateway.more = ["ws"]
    gateway.start()
    yield gateway
    gateway.end_well()


class Page:
    """A client; `heard` is what came, octets of messages are in `octets`."""

    def __init__(self, gateway: GatewayProcess, protocols: list[str], origin: str | None = None) -> None:
        self._tcp = socket.create_connection(("127.0.0.1", gateway.ports["ws"]), timeout=HANG_S)
        self._socket = WSConnection(ConnectionType.CLIENT)
        headers = [(b"Origin", origin.encode())] if origin else []
        host = f"127.0.0.1:{gateway.ports['ws']}"
        self.send(Request(host=host, target="/any/path", subprotocols=protocols, extra_headers=headers))
        self.octets = b""
        self.heard: list[Event] = []

    def send(self, *events: Event) -> None:
        self._tcp.sendall(b"".join(self._socket.send(event) for event in events))

    def send_octets(self, octets: bytes) -> None:
        self._tcp.sendall(octets)

    def until(self, kind: type[Event]) -> Event:
        while True:
            match = next((event for event in self.heard if isinstance(event, kind)), None)
            if match is not None:
                return match
            self.read()

    def until_octets(self, count: int) -> bytes:
        while len(self.octets) < count:
            self.read()
        return self.octets

    def read(self) -> None:
        data = self._tcp.recv(65_536)
        assert data, f"the gateway closed; heard {self.heard}"
        self._socket.receive_data(data)
        for event in self._socket.events():
            if isinstance(event, BytesMessage):
                self.octets += event.data
            else:
                self.heard.append(event)

    def ended(self) -> bool:
        while data := self._tcp.recv(65_536):
            self.octets += data
        return True

    def close(self) -> None:
        self._tcp.close()


def test_amqp_is_cut_anywhere(gateway: GatewayProcess) -> None:
    page = Page(gateway, ["other", "amqp"])
    accepted = page.until(AcceptConnection)
    assert isinstance(accepted, AcceptConnection) and accepted.subprotocol == "amqp"
    octets = AMQP_HEADER + frames.open_("page") + frames.begin()
    page.send(*(BytesMessage(octets[at : at + 1]) for at in range(20)))
    page.send(BytesMessage(octets[20:30], message_finished=False), Ping(b"there?"), BytesMessage(octets[30:]))
    pong = page.until(Pong)
    assert isinstance(pong, Pong) and pong.payload == b"there?"
    while len(seen := frames.read(page.octets[8:])[0]) < 2:
        page.read()
    assert page.octets[:8] == AMQP_HEADER and [frame.name for frame in seen] == ["open", "begin"]
    page.send(BytesMessage(frames.close()))
    closed = page.until(CloseConnection)
    assert isinstance(closed, CloseConnection) and closed.code == 1000
    assert frames.read(page.octets[8:])[0][-1].name == "close"
    page.close()


@pytest.mark.parametrize(
    ("protocols", "origin", "status"),
    [(["other"], None, 400), ([], None, 400), (["amqp"], "https://evil.example", 403), (["amqp"], "null", 403)],
)
def test_who_is_turned_away(gateway: GatewayProcess, protocols: list[str], origin: str | None, status: int) -> None:
    page = Page(gateway, protocols, origin)
    refused = page.until(RejectConnection)
    assert isinstance(refused, RejectConnection) and refused.status_code == status
    page.close()


def test_pages_that_may(gateway: GatewayProcess) -> None:
    for origin in (f"http://127.0.0.1:{gateway.ports['ws']}", "https://app.example"):
        page = Page(gateway, ["amqp"], origin)
        page.until(AcceptConnection)
        page.send(BytesMessage(SASL_HEADER))
        assert page.until_octets(8)[:8] == SASL_HEADER
        page.close()


def test_what_is_no_binary_message_ends_it(gateway: GatewayProcess) -> None:
    page = Page(gateway, ["amqp"])
    page.until(AcceptConnection)
    page.send(TextMessage("AMQP"))
    closed = page.until(CloseConnection)
    assert isinstance(closed, CloseConnection) and closed.code == 1003
    page.close()


@pytest.mark.parametrize(
    "octets", [b"\x82\x7f" + b"\xff" * 8, b"\xf2\x80\0\0\0\0", b"\x82\x05hello", b"\x89\xfe\x01\x00" + b"\0" * 8]
)
def test_what_is_no_frame_ends_it(gateway: GatewayProcess, octets: bytes) -> None:
    page = Page(gateway, ["amqp"])
    page.until(AcceptConnection)
    page.send_octets(octets)
    assert page.ended()
    page.close()


@pytest.mark.parametrize(
    "octets",
    [
        b"",
        AMQP_HEADER,
        b"GET / HTTP/1.1\r\nHost: \xff\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /" + b"a" * 70_000,
    ],
)
def test_what_is_no_handshake_or_does_not_end_is_cut_off(gateway: GatewayProcess, octets: bytes) -> None:
    with socket.create_connection(("127.0.0.1", gateway.ports["ws"]), timeout=HANG_S) as peer:
        try:
            peer.sendall(octets)
            while peer.recv(4096):
                pass
        except ConnectionError:
            return
