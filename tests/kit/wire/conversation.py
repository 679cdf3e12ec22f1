"""A peer without a socket: it talks to a `Gateway` in its own process, turn by turn, and reads what comes back.

gateway = build_gateway(tables, realm)
peer = Conversation(gateway)          # opened, with a session on channel 0
seen = peer.say(frames.attach_sender("q"))
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gateway.config.limits import Limits
from gateway.config.settings import EmbeddedRealm, Listen, MappingSettings, NodeSettings, Security, Settings
from gateway.session.gateway import Gateway
from mappings import TableSet
from tests.kit.realm.stopped_clock import StoppedClock
from tests.kit.wire import frames
from tests.kit.wire.frames import Seen
from tests.kit.wire.scripted_realm import ScriptedRealm


def build_gateway(tables: TableSet, realm: ScriptedRealm, **limits: int) -> Gateway:
    """A gateway on a scripted realm."""
    return Gateway(settings_of(tables, (), limits), realm, tables, StoppedClock())  # type: ignore[arg-type]


def settings_of(tables: TableSet, listen: tuple[Listen, ...], limits: dict[str, int]) -> Settings:
    """Everything that a gateway on a scripted realm is configured with."""
    return Settings(
        listen=listen,
        realm=EmbeddedRealm(Path("nowhere")),
        mappings=MappingSettings(tables.profile, None),
        nodes=NodeSettings(()),
        security=Security(("ANONYMOUS",), True),
        limits=Limits(**limits),
        transformer="basic",
    )


class Conversation:
    """One connection. `seen` is everything that the gateway has said on it, in order."""

    def __init__(self, gateway: Gateway, container: str = "peer", begin: bool = True) -> None:
        self.gateway = gateway
        self.connection = gateway.connect()
        self.seen: list[Seen] = []
        self._data = b""
        self._numbers = itertools.count()
        self._gone = False
        if begin:
            self.say(frames.AMQP_HEADER, frames.open_(container), frames.begin())

    def say(self, *pieces: bytes, cut: Callable[[bytes], list[bytes]] | None = None) -> list[Seen]:
        """Send, take turns until nothing moves, and return what came back."""
        before = len(self.seen)
        data = b"".join(pieces)
        for chunk in cut(data) if cut else [data]:
            self.connection.receive(chunk)
            self.read()
        self.listen()
        return self.seen[before:]

    def number(self) -> int:
        """The next delivery-id of its first session."""
        return next(self._numbers)

    def listen(self) -> list[Seen]:
        """Turns of the gateway until nothing moves; what came meanwhile."""
        before = len(self.seen)
        quiet = 0
        while quiet < 2:
            self.gateway.poll()
            quiet = 0 if self.read() or self.gateway.departures else quiet + 1
        return self.seen[before:]

    def read(self) -> int:
        if self._gone:
            return 0
        data = b"".join(self.connection.data_to_send())
        new_frames, self._data = frames.read(self._data + data)
        self.seen += new_frames
        return len(data)

    def lose(self) -> None:
        """The socket is gone."""
        self._gone = True
        self.gateway.disconnect(self.connection)

    def comparable(self) -> list[tuple[Any, ...]]:
        return [seen.comparable() for seen in self.seen]
