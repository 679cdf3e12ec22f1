"""Users of a gateway or a console under test, connections that log in, and SASL frames by hand."""

from __future__ import annotations

import socket
from pathlib import Path

from proton.utils import BlockingConnection

from gateway.auth.passwords import hash_password
from gateway.auth.users import SCRAM
from tests.kit.patience import HANG_S
from tests.kit.processes.gateway import GatewayProcess
from transformers.codec import Described, decode

PASSWORD = "not-to-be-seen-anywhere"


def write_users(file: Path, **groups: list[str]) -> None:
    lines = ["users:"]
    for name, memberships in groups.items():
        lines += [f"  {name}:", f"    groups: [{', '.join(memberships)}]", "    scram:"]
        lines += [f'      - "{hash_password(PASSWORD, mechanism, 4096)}"' for mechanism in SCRAM]
    file.write_text("\n".join(lines) + "\n")
    file.chmod(0o600)  # else the gateway warns


def connect(gateway: GatewayProcess, password: str, mechanism: str, user: str = "alice") -> BlockingConnection:
    return BlockingConnection(
        f"amqp://{gateway.address}", timeout=HANG_S, user=user, password=password, allowed_mechs=mechanism,
        reconnect=False, allow_insecure_mechs=True, sasl_enabled=True,
    )  # fmt: skip


def read_frame(peer: socket.socket) -> Described:
    head = peer.recv(8, socket.MSG_WAITALL)
    body = peer.recv(int.from_bytes(head[:4], "big") - 8, socket.MSG_WAITALL)
    value = decode(body)[0]
    assert isinstance(value, Described)
    return value
