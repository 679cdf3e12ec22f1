"""Logging in on a real gateway: proton's own PLAIN, SCRAM in frames, what is refused; no password is logged."""

from __future__ import annotations

import os
import select
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import proton
import pytest
from scramp import ScramClient

from gateway.auth.sasl import AMQP_HEADER, SASL_HEADER
from gateway.auth.users import SCRAM
from tests.gateway.auth.sasl_frames import frame, init
from tests.kit.patience import HANG_S, until
from tests.kit.processes.gateway import GatewayProcess, embedded_realm, start_gateway
from tests.kit.wire.logins import PASSWORD, connect, read_frame, write_users
from transformers.codec import Described


def start(directory: Path) -> GatewayProcess:
    """alice and bob are in its users file."""
    write_users(directory / "users.yaml", alice=["ops"], bob=[])
    security = {
        "sasl": ["SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN"],
        "users": "users.yaml",
        "plain_without_tls": True,
    }
    return start_gateway(directory, embedded_realm(directory), security=security)


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    gateway = start(tmp_path_factory.mktemp("login"))
    yield gateway
    gateway.end_well()
    assert PASSWORD not in gateway.log_path.read_text()


def test_protons_client_logs_in_with_plain_and_publishes(gateway: GatewayProcess) -> None:
    connection = connect(gateway, PASSWORD, "PLAIN")
    sender = connection.create_sender("orders")
    assert sender.send(proton.Message(body="one")).remote_state == proton.Delivery.ACCEPTED
    connection.close()


@pytest.mark.parametrize(("password", "mechanism"), [(f"{PASSWORD}?", "PLAIN"), (PASSWORD, "ANONYMOUS")])
def test_protons_client_is_refused(gateway: GatewayProcess, password: str, mechanism: str) -> None:
    with pytest.raises(proton.ConnectionException):
        connect(gateway, password, mechanism, user="bob")


def open_socket(gateway: GatewayProcess, address: str = "127.0.0.1") -> socket.socket:
    peer = socket.create_connection(("127.0.0.1", gateway.port), HANG_S, source_address=(address, 0))
    peer.sendall(SASL_HEADER)
    assert peer.recv(8, socket.MSG_WAITALL) == SASL_HEADER
    assert list(read_frame(peer).value[0].items) == ["SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN"]
    return peer


@pytest.mark.parametrize("mechanism", SCRAM)
def test_scram_on_the_wire(gateway: GatewayProcess, mechanism: str) -> None:
    client = ScramClient([mechanism], "alice", PASSWORD)
    with open_socket(gateway) as peer:
        peer.sendall(init(mechanism, client.get_client_first().encode()))
        client.set_server_first(read_frame(peer).value[0].decode())
        peer.sendall(frame(Described(0x43, [client.get_client_final().encode()])) + AMQP_HEADER)
        code, last_word = read_frame(peer).value
        assert code == 0
        client.set_server_final(last_word.decode())
        assert peer.recv(8, socket.MSG_WAITALL) == AMQP_HEADER


def test_a_login_goes_on_when_the_users_file_is_read_again_and_says_the_same(gateway: GatewayProcess) -> None:
    """As it is read once more soon after each start."""
    client = ScramClient(["SCRAM-SHA-256"], "alice", PASSWORD)
    with open_socket(gateway) as challenged:
        challenged.sendall(init("SCRAM-SHA-256", client.get_client_first().encode()))
        client.set_server_first(read_frame(challenged).value[0].decode())
        read = "the users file was read: 2 users"
        before = gateway.log().count(read)
        os.utime(gateway.config_path.parent / "users.yaml")
        os.kill(gateway.pid, signal.SIGHUP)
        until(lambda: gateway.log().count(read) > before, "the users file is read again")
        challenged.sendall(frame(Described(0x43, [client.get_client_final().encode()])))
        assert read_frame(challenged).value[0] == 0


def test_a_user_who_is_removed_during_a_login_does_not_get_in(tmp_path: Path) -> None:
    gateway = start(tmp_path)
    client = ScramClient(["SCRAM-SHA-256"], "alice", PASSWORD)
    with open_socket(gateway) as silent, open_socket(gateway) as challenged:
        challenged.sendall(init("SCRAM-SHA-256", client.get_client_first().encode()))
        client.set_server_first(read_frame(challenged).value[0].decode())
        write_users(tmp_path / "users.yaml", bob=[])
        os.kill(gateway.pid, signal.SIGHUP)
        gateway.await_log("the users file was read: 1 users")
        challenged.sendall(frame(Described(0x43, [client.get_client_final().encode()])) + AMQP_HEADER)
        assert read_frame(challenged).value == [4], "temporary: the next login hears what the file says now"
        assert challenged.recv(1) == b""
        silent.sendall(init("PLAIN", f"\0alice\0{PASSWORD}".encode()))
        assert read_frame(silent).value == [1]
    assert guess(gateway, "bob", PASSWORD) == 0
    gateway.end_well()


def test_bare_amqp_is_not_let_in_past_the_users(gateway: GatewayProcess) -> None:
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=HANG_S) as peer:
        peer.sendall(AMQP_HEADER)
        assert peer.recv(8, socket.MSG_WAITALL) == SASL_HEADER
        assert peer.recv(1) == b""


def guess(gateway: GatewayProcess, user: str, password: str, address: str = "127.0.0.1") -> int | None:
    with open_socket(gateway, address) as peer:
        peer.sendall(init("PLAIN", f"\0{user}\0{password}".encode()))
        code = read_frame(peer).value[0]
        return int(code)


def test_guessing_gets_slower_and_slows_no_other_peer(gateway: GatewayProcess) -> None:
    begin = time.monotonic()
    assert [guess(gateway, "mallory", str(number)) for number in range(4)] == [1, 1, 1, 1]
    assert time.monotonic() - begin >= 0.1 + 0.2 + 0.4
    assert guess(gateway, "alice", PASSWORD) == 0
    assert guess(gateway, "alice", PASSWORD) == 0


def test_guesses_in_parallel_gain_nothing_and_hold_no_other_address_up(gateway: GatewayProcess) -> None:
    guessers = [open_socket(gateway) for _ in range(50)]
    begin = time.monotonic()
    for number, peer in enumerate(guessers):
        peer.sendall(init("PLAIN", f"\0carol\0{number}".encode()))
    assert guess(gateway, "alice", PASSWORD, "127.0.0.2") == 0
    answered: list[socket.socket] = []
    while len(answered) < 3:
        answered += select.select([peer for peer in guessers if peer not in answered], [], [], HANG_S)[0]
    answered += select.select([peer for peer in guessers if peer not in answered], [], [], 0)[0]
    elapsed_s = time.monotonic() - begin
    assert len(answered) <= sum(due_s <= elapsed_s for due_s in (0, 0.1, 0.3, 0.7, 1.5, 3.1, 6.3))
    assert [read_frame(peer).value[0] for peer in answered] == [1] * len(answered)
    assert guess(gateway, "carol", "wrong", "127.0.0.2") == 1, "the same user from elsewhere does not wait behind them"
    for peer in guessers:
        peer.close()
    assert guess(gateway, "alice", PASSWORD) == 0, "of their address another user does not wait either"


def test_hanging_up_while_a_password_is_checked_breaks_nothing(gateway: GatewayProcess) -> None:
    for number in range(10):
        peer = open_socket(gateway)
        peer.sendall(init("PLAIN", f"\0eve-{number}\0{PASSWORD}".encode()) + b"\0" * 100)
        peer.close()
    assert guess(gateway, "alice", PASSWORD) == 0
