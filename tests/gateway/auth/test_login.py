"""Logging in on a real gateway: proton's own PLAIN, SCRAM in frames, what is refused; no password is logged."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import proton
import pytest
from proton.utils import BlockingConnection
from scramp import ScramClient

from gateway.passwords import hash_password
from gateway.sasl import AMQP_HEADER, SASL_HEADER
from gateway.users import SCRAM
from tests.gateway.test_sasl import frame, init
from tests.gateway_process import GatewayProcess, embedded_realm, start_gateway
from tests.patience import HANG_S
from tests.rewriting import rewrite
from tests.wire.peer import Peer
from transformers.amqp_types import Described, decode

PASSWORD = "not-to-be-seen-anywhere"


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    directory = tmp_path_factory.mktemp("login")
    write_users(directory / "users.yaml", alice=["ops"], bob=[])
    security = {
        "sasl": ["SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN"],
        "users": "users.yaml",
        "plain_without_tls": True,
    }
    gateway = start_gateway(directory, embedded_realm(directory), security=security)
    yield gateway
    assert gateway.stop() == 0, gateway.log()
    assert "Traceback" not in gateway.log(), gateway.log()
    assert PASSWORD not in gateway.log_path.read_text()


def write_users(file: Path, **groups: list[str]) -> None:
    lines = ["users:"]
    for name, of in groups.items():
        lines += [f"  {name}:", f"    groups: [{', '.join(of)}]", "    scram:"]
        lines += [f'      - "{hash_password(PASSWORD, mechanism, 4096)}"' for mechanism in SCRAM]
    rewrite(file, "\n".join(lines) + "\n")


def connect(house: GatewayProcess, password: str, mechanism: str, user: str = "alice") -> BlockingConnection:
    return BlockingConnection(
        f"amqp://{house.address}", timeout=HANG_S, user=user, password=password, allowed_mechs=mechanism,
        reconnect=False, allow_insecure_mechs=True, sasl_enabled=True,
    )  # fmt: skip


def test_protons_client_logs_in_with_plain_and_publishes(house: GatewayProcess) -> None:
    connection = connect(house, PASSWORD, "PLAIN")
    sender = connection.create_sender("orders")
    assert sender.send(proton.Message(body="one")).remote_state == proton.Delivery.ACCEPTED
    connection.close()


@pytest.mark.parametrize(("password", "mechanism"), [(f"{PASSWORD}?", "PLAIN"), (PASSWORD, "ANONYMOUS")])
def test_protons_client_is_refused(house: GatewayProcess, password: str, mechanism: str) -> None:
    with pytest.raises(proton.ConnectionException):
        connect(house, password, mechanism, user="bob")


def read_frame(peer: socket.socket) -> Described:
    head = peer.recv(8, socket.MSG_WAITALL)
    body = peer.recv(int.from_bytes(head[:4], "big") - 8, socket.MSG_WAITALL)
    value = decode(body)[0]
    assert isinstance(value, Described)
    return value


def open_socket(house: GatewayProcess) -> socket.socket:
    peer = socket.create_connection(("127.0.0.1", house.port), timeout=HANG_S)
    peer.sendall(SASL_HEADER)
    assert peer.recv(8, socket.MSG_WAITALL) == SASL_HEADER
    assert list(read_frame(peer).value[0].items) == ["SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN"]
    return peer


@pytest.mark.parametrize("mechanism", SCRAM)
def test_scram_on_the_wire(house: GatewayProcess, mechanism: str) -> None:
    client = ScramClient([mechanism], "alice", PASSWORD)
    with open_socket(house) as peer:
        peer.sendall(init(mechanism, client.get_client_first().encode()))
        client.set_server_first(read_frame(peer).value[0].decode())
        peer.sendall(frame(Described(0x43, [client.get_client_final().encode()])) + AMQP_HEADER)
        code, last_word = read_frame(peer).value
        assert code == 0
        client.set_server_final(last_word.decode())
        assert peer.recv(8, socket.MSG_WAITALL) == AMQP_HEADER


def test_bare_amqp_is_not_let_in_past_the_users(house: GatewayProcess) -> None:
    with socket.create_connection(("127.0.0.1", house.port), timeout=HANG_S) as peer:
        peer.sendall(AMQP_HEADER)
        assert peer.recv(8, socket.MSG_WAITALL) == SASL_HEADER
        assert peer.recv(1) == b""


def guess(house: GatewayProcess, user: str, password: str) -> int | None:
    with open_socket(house) as peer:
        peer.sendall(init("PLAIN", f"\0{user}\0{password}".encode()))
        code = read_frame(peer).value[0]
        return int(code)


def test_guessing_gets_slower_and_hurts_nobody_else(house: GatewayProcess) -> None:
    begin = time.monotonic()
    assert [guess(house, "mallory", str(number)) for number in range(4)] == [1, 1, 1, 1]
    assert time.monotonic() - begin >= 0.1 + 0.2 + 0.4
    assert guess(house, "alice", PASSWORD) == 0
    assert guess(house, "alice", PASSWORD) == 0


def test_hanging_up_while_a_password_is_checked_breaks_nothing(house: GatewayProcess) -> None:
    for number in range(10):
        peer = open_socket(house)
        peer.sendall(init("PLAIN", f"\0eve-{number}\0{PASSWORD}".encode()) + b"\0" * 100)
        peer.close()
    assert guess(house, "alice", PASSWORD) == 0


def test_who_says_nothing_cannot_take_every_place(tmp_path: Path) -> None:
    house = start_gateway(tmp_path, embedded_realm(tmp_path), limits={"half_open_connections": 3})
    silent = [socket.create_connection(("127.0.0.1", house.port), timeout=HANG_S) for _ in range(3)]
    one_more = socket.create_connection(("127.0.0.1", house.port), timeout=HANG_S)
    with one_more, contextlib.suppress(ConnectionResetError):
        assert one_more.recv(1) == b""
    silent.pop().close()
    opened: list[Peer] = []
    deadline = time.monotonic() + HANG_S
    while len(opened) < 4 and time.monotonic() < deadline:  # those that say who they are do not count
        try:
            opened.append(Peer(house.port))
        except (OSError, AssertionError):
            time.sleep(0.05)
    assert len(opened) == 4
    for each in silent:
        each.close()
    for peer in opened:
        peer.close()
    assert house.stop() == 0, house.log()
