"""A peer on a real socket that speaks in hand-made frames and reads what comes back."""

from __future__ import annotations

import socket
import time
from typing import Any

from tests.wire import frames
from tests.wire.frames import Seen


class Peer:
    """One TCP connection, opened with one session on channel 0 unless told otherwise."""

    def __init__(self, port: int, container: str = "peer", begin: bool = True) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=10)
        self._data = b""
        self.seen: list[Seen] = []
        if begin:
            self.send(frames.AMQP_HEADER, frames.open_(container), frames.begin())
            self.expect("open")
            self.expect("begin")

    def send(self, *pieces: bytes) -> None:
        self._socket.sendall(b"".join(pieces))

    def expect(self, name: str, deadline_s: float = 10.0, **fields: Any) -> Seen:
        """The next frame of that name; flows in between are passed over, anything else in between is an error."""
        end = time.monotonic() + deadline_s
        while time.monotonic() < end:
            for index, seen in enumerate(self.seen):
                if seen.name == name:
                    del self.seen[: index + 1]
                    return seen
                if seen.name != "flow":
                    raise AssertionError(f"expected {name}, got {seen}")
            if not self._read(end - time.monotonic()):
                break
        raise AssertionError(f"no {name} within {deadline_s} s; seen: {self.seen}")

    def nothing(self, seconds: float = 0.2) -> None:
        """Nothing but flows comes for a while."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and self._read(end - time.monotonic()):
            pass
        unexpected = [seen for seen in self.seen if seen.name != "flow"]
        assert not unexpected, unexpected

    def closed(self, deadline_s: float = 5.0) -> bool:
        """True when the gateway closes the socket in time."""
        end = time.monotonic() + deadline_s
        while time.monotonic() < end:
            if not self._read(end - time.monotonic()):
                return self._ended
        return False

    _ended = False

    def _read(self, seconds: float) -> bool:
        self._socket.settimeout(max(0.001, seconds))
        try:
            data = self._socket.recv(65536)
        except TimeoutError:
            return False
        except ConnectionError:
            data = b""
        if not data:
            self._ended = True
            return False
        found, self._data = frames.read(self._data + data)
        self.seen += found
        return True

    def reset(self) -> None:
        """Go away without a word: RST, not FIN."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
        self._socket.close()

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> Peer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
