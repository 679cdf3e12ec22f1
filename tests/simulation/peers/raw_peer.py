"""A gateway of a world without faults, and a peer that speaks to it in frames made by hand."""

from __future__ import annotations

from tests.kit.wire.frames import Seen, parse
from tests.simulation.shape import PLAIN
from tests.simulation.world import World


class RawPeer:
    """One connection; what is sent is read by the gateway at once, in one piece."""

    def __init__(self) -> None:
        self.world = World(0, PLAIN)
        self._gateway = self.world.process.gateway
        self._connection = self._gateway.connect()

    def send(self, *pieces: bytes, turns: int = 20) -> list[Seen]:
        """What the gateway answers, some turns later."""
        self._connection.receive(b"".join(pieces))
        answer = b"".join(self._connection.data_to_send())
        for _ in range(turns):
            self.world.clock.advance(1)
            self._gateway.poll()
            answer += b"".join(self._connection.data_to_send())
        return [frame for frame, _ in parse(answer)]
