"""Connections of users on a real gateway: PLAIN without TLS, and the commands that give them grants."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from gateway.auth.passwords import hash_password
from gateway.auth.sasl import AMQP_HEADER, SASL_HEADER
from gateway.cli import main as cli
from tests.kit.processes.gateway import GatewayProcess, embedded_realm, start_gateway
from tests.kit.wire import frames
from tests.kit.wire.peer import Peer
from transformers.codec import Described, Symbol, encode

PASSWORD = "open sesame"


def serve_users(directory: Path, groups: dict[str, str], **settings: Any) -> Iterator[GatewayProcess]:
    """`groups` by user. A connection without a login is anonymous; nodes called `any.*` are made on attach."""
    write_users(directory / "users.yaml", groups)
    security = {"sasl": ["PLAIN"], "users": "users.yaml", "plain_without_tls": True, "bare_amqp": True}
    nodes = {"create_on_attach": ["any.*"]}
    gateway = start_gateway(directory, embedded_realm(directory), security=security, nodes=nodes, **settings)
    yield gateway
    gateway.end_well()


def write_users(file: Path, groups: dict[str, str]) -> None:
    """In one move, as an editor does."""
    entry = hash_password(PASSWORD, "SCRAM-SHA-256", 4096)
    users = "".join(f'  {name}: {{groups: {group}, scram: ["{entry}"]}}\n' for name, group in groups.items())
    written = file.with_suffix(".new")
    written.write_text(f"users:\n{users}")
    written.replace(file)


def command(gateway: GatewayProcess, *words: str) -> str:
    """What `realmgate` prints; RuntimeError with what it complains of. In this process: it starts sooner."""
    out, complaints = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(complaints):
        code = cli.run([*words, "--config", str(gateway.config_path)])
    if code != 0:
        raise RuntimeError(f"failed ({code}): {complaints.getvalue()}")
    return out.getvalue()


def login(peers: ExitStack, gateway: GatewayProcess, user: str, container: str | None = None) -> Peer:
    """A connection of the user's, with one session."""
    peer = peers.enter_context(Peer(gateway.port, container, begin=False))
    body = encode(Described(0x41, [Symbol("PLAIN"), f"\0{user}\0{PASSWORD}".encode()]))
    peer.send(SASL_HEADER, (8 + len(body)).to_bytes(4, "big") + b"\x02\x01\0\0" + body, AMQP_HEADER)
    read = b""
    while not read.endswith(AMQP_HEADER):  # SASL's frames, then the header that answers ours
        read += peer._socket.recv(1024)
    peer.send(frames.open_(peer.container), frames.begin())
    peer.expect("open")
    peer.expect("begin")
    return peer
