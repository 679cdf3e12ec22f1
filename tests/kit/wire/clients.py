"""Many peers at once, each no more than a socket: what they say is made beforehand, of what comes back frames of one
kind are counted. So that hundreds of connections cost the gateway more than they cost who drives them.

    with Clients(port) as clients:
        members = clients.enter(2_000, lambda number: [frames.attach_receiver("q"), frames.flow(1, 10)], answers=1)
        members[0].send(frames.transfer(0, message)); members[0].await_(DISPOSITION)

A pattern is the first octets of a frame's body. And what `/proc` says of a process. Errors: `AssertionError` where
something does not come in time.
"""

from __future__ import annotations

import os
import resource
import socket
import struct
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

from tests.kit.patience import HANG_S
from tests.kit.wire import frames
from transformers.codec import UInt

ATTACH, FLOW, TRANSFER, DISPOSITION, DETACH = (b"\x00\x53" + bytes([code]) for code in range(0x12, 0x17))
HEARTBEAT = b"\x00\x00\x00\x08\x02\x00\x00\x00"
PATIENCE_S = HANG_S
AT_ONCE = 50  # who enters together
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
Says = Callable[[int], Sequence[bytes]]


class Member:
    """One connection."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, *pieces: bytes) -> None:
        self.socket.sendall(b"".join(pieces))

    def await_(self, *patterns: bytes, count: int = 1) -> bytes:
        """Read until so many frames of each kind are here. What came, which is not counted again."""
        end = time.monotonic() + PATIENCE_S
        pieces, tail, counts = [b""], b"", [0] * len(patterns)
        while min(counts, default=count) < count:
            assert time.monotonic() < end, f"{counts} of {count} frames {patterns} came"
            data = self.socket.recv(1 << 20)
            assert data, f"closed after {counts} of {count} frames {patterns}: {pieces[-1][-200:]!r}"
            seam = tail + data  # a pattern has three octets
            counts = [before + seam.count(pattern) for before, pattern in zip(counts, patterns, strict=True)]
            pieces.append(data)
            tail = seam[-2:]
        return b"".join(pieces)

    def reset(self) -> None:
        """Go without a word: RST, so that no port is kept for a minute."""
        if self.socket.fileno() < 0:
            return  # it has gone before
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()


class Clients:
    """All members of one gateway's. Raises this process's soft limit of open files where it has to."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.members: list[Member] = []
        self._entered = 0  # so far: each has a name of its own

    def enter(
        self, count: int, says: Says, answers: int = 1, pattern: bytes = ATTACH, idle_ms: int = 60_000
    ) -> list[Member]:
        """So many more; each opens with one session and says that, and has so many answers of that kind. `idle_ms`: how
        long it lets the gateway be silent."""
        may_open(len(self.members) + count)
        entered: list[Member] = []
        for at in range(0, count, AT_ONCE):
            fresh = [Member(self._port) for _ in range(min(AT_ONCE, count - at))]
            for number, member in enumerate(fresh, self._entered):
                member.send(frames.AMQP_HEADER, hello(f"member-{number}", idle_ms), frames.begin(), *says(number))
            for member in fresh:
                assert DETACH not in member.await_(pattern, count=answers), "a link was refused"
            self._entered += len(fresh)
            self.members += fresh
            entered += fresh
        return entered

    def beat(self) -> None:
        """No one has been silent for too long."""
        for member in self.members:
            member.send(HEARTBEAT)

    def leave(self) -> None:
        for member in self.members:
            member.reset()
        self.members = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.leave()


def hello(container: str, idle_ms: int) -> bytes:
    return frames.frame(frames.OPEN, [container, "host", None, None, UInt(idle_ms)])


def may_open(count: int) -> None:
    """So many connections of this process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count + 500
    if 0 <= soft < wanted:
        assert hard < 0 or hard >= wanted, f"{count} connections take more than the {hard} files that may be open"
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


# -- of a process


def used_s(pid: int) -> float:
    """Processor time so far, seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


def resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def descriptors(pid: int) -> int:
    return len([*Path(f"/proc/{pid}/fd").iterdir()])


def until(reached: Callable[[], bool], what: str, deadline_s: float = PATIENCE_S) -> None:
    end = time.monotonic() + deadline_s
    while not reached():
        assert time.monotonic() < end, f"waited in vain for {what}"
        time.sleep(0.02)
