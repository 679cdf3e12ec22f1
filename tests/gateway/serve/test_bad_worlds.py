"""`realmgate serve` in a world that is not ready or not ours: what it says, when it is ready, how it ends."""

from __future__ import annotations

import socket
import sqlite3
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from native_backend.log.open import open_embedded
from tests.kit.processes.broker import free_port
from tests.kit.processes.gateway import embedded_realm, kafka_realm, make_gateway
from tests.kit.wire import frames
from tests.kit.wire.peer import Peer


@contextmanager
def forwarded(port: int, bootstrap: str) -> Iterator[None]:
    """The one who connects to `port` is connected to `bootstrap`, from now on."""
    host, _, to = bootstrap.rpartition(":")
    listener = socket.create_server(("127.0.0.1", port))

    def accept() -> None:
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            far = socket.create_connection((host, int(to)))
            for pair in ((near, far), (far, near)):
                threading.Thread(target=carry, args=pair, daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield
    finally:
        listener.close()


def carry(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(65536):
            target.sendall(data)
    except OSError:
        pass
    finally:
        target.close()


def test_a_gateway_waits_for_a_kafka_that_is_not_there_yet(kafka_bootstrap: str, tmp_path: Path) -> None:
    port = free_port()
    gateway = make_gateway(tmp_path, kafka_realm(f"127.0.0.1:{port}", f"t{uuid.uuid4().hex[:8]}"))
    gateway.launch()
    gateway.await_log(f"the realm on Kafka at 127.0.0.1:{port} does not answer")
    assert not gateway.is_ready()
    with forwarded(port, kafka_bootstrap):
        gateway.await_ready()
        with Peer(gateway.port) as peer:
            peer.stored("orders", frames.message(b"here"))
        assert gateway.stop() == 0


@pytest.mark.parametrize("bootstrap", ["127.0.0.1:1", "kafka.invalid:9092"], ids=["refuses", "does-not-resolve"])
def test_a_wrong_bootstrap_is_reported_and_the_wait_can_be_ended(tmp_path: Path, bootstrap: str) -> None:
    gateway = make_gateway(tmp_path, kafka_realm(bootstrap, "um"))
    gateway.launch()
    gateway.await_log(f"the realm on Kafka at {bootstrap} does not answer")
    gateway.await_log("or correct realm")
    assert gateway.stop() == 0
    assert "nothing to close" in gateway.log()


def test_a_realm_of_a_later_release_is_refused_with_what_to_do(tmp_path: Path) -> None:
    open_embedded(tmp_path / "realm").close()
    connection = sqlite3.connect(tmp_path / "realm" / "realm.sqlite")
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    gateway = make_gateway(tmp_path, embedded_realm(tmp_path))
    gateway.launch()
    assert gateway.await_exit() == 2
    assert "has format 99; this release knows up to 3; a newer release wrote it: use that one" in gateway.log()
