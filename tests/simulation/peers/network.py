"""The network: bytes on their way, cut at random places, late, and sometimes lost with their connection.

A wire has two directions. `move` carries a random part of what is due; a reset loses what is under way, and each side
learns of it. Nothing is reordered or changed: that is what TCP promises.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Protocol


class End(Protocol):
    """Who sits at an end of a wire."""

    def receive(self, wire: Wire, data: bytes) -> None: ...
    def closed(self, wire: Wire) -> None: ...


@dataclass(slots=True, eq=False)
class Wire:
    """One TCP connection."""

    client: End
    gateway: End
    to_gateway: bytearray = field(default_factory=bytearray)
    to_client: bytearray = field(default_factory=bytearray)
    ending: bool = False  # the gateway has closed its side; what it sent still arrives
    client_ending: bool = False
    open: bool = True
    deaf: bool = False  # the client does not read for a while


class Network:
    """All wires, in the order of their making."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self.wires: list[Wire] = []

    def connect(self, client: End, gateway: End) -> Wire:
        wire = Wire(client, gateway)
        self.wires.append(wire)
        return wire

    @property
    def idle(self) -> bool:
        return not any(wire.to_gateway or wire.to_client for wire in self.wires)

    def move(self, everything: bool = False) -> None:
        """A turn of the network."""
        for wire in list(self.wires):
            if wire.open:
                self._carry(wire, everything)
            is_over = (wire.ending and not wire.to_client) or (wire.client_ending and not wire.to_gateway)
            if wire.open and is_over:
                self.reset(wire)

    def _carry(self, wire: Wire, everything: bool) -> None:
        data = self._cut(wire.to_gateway, everything)
        if data:
            wire.gateway.receive(wire, data)
        data = b"" if wire.deaf and not everything else self._cut(wire.to_client, everything)
        if data and wire.open:
            wire.client.receive(wire, data)

    def _cut(self, waiting: bytearray, everything: bool) -> bytes:
        count = len(waiting)
        if not everything and count:
            chance = self._random.random()
            count = count if chance < 0.6 else self._random.randint(0, count) if chance < 0.9 else 0
        data = bytes(waiting[:count])
        del waiting[:count]
        return data

    def reset(self, wire: Wire) -> None:
        """The connection is gone; both ends hear of it."""
        if wire.open:
            wire.open = False
            self.wires.remove(wire)
            wire.gateway.closed(wire)
            wire.client.closed(wire)
