"""Users of a gateway under test, connections that log in (both of the kit), and SASL frames by hand."""

from __future__ import annotations

import socket

from tests.kit.wire.logins import PASSWORD, connect, write_users
from transformers.codec import Described, decode

__all__ = ["PASSWORD", "connect", "read_frame", "write_users"]


def read_frame(peer: socket.socket) -> Described:
    head = peer.recv(8, socket.MSG_WAITALL)
    body = peer.recv(int.from_bytes(head[:4], "big") - 8, socket.MSG_WAITALL)
    value = decode(body)[0]
    assert isinstance(value, Described)
    return value
