"""One life of the gateway's process on the world's disk: what `server.py` is to a socket, this is to the network.

It opens a realm on the simulated log, takes turns, and ends in order (`stop`) or not (`kill`).
"""

from __future__ import annotations

import json
from random import Random
from typing import TYPE_CHECKING, Any

from gateway.config.settings import EmbeddedRealm, MappingSettings, NodeSettings, Security, Settings
from gateway.session.connection import Connection
from gateway.session.gateway import Gateway
from mappings import load_tables
from native_backend.journal.process_liveness import Process
from native_backend.log.port import LogError
from native_backend.log.simulated.worker import InlineWorker
from native_backend.log.worker import Workers
from native_backend.realm import Realm
from tests.kit.realm.inside import context_of
from tests.kit.realm.raised_mistakes import raise_mistakes
from tests.simulation.observation.facts import WireLink
from tests.simulation.observation.ledger import PREFIX
from tests.simulation.observation.watched_log import WatchedLog
from tests.simulation.observation.witness import Witness
from tests.simulation.peers.network import Wire

if TYPE_CHECKING:
    from tests.simulation.world import World

TABLES = load_tables(profile="extended")
_DRAIN_MS, _CLOSE_MS = 2000, 1000


class LateControl(InlineWorker):
    """Jobs run at once; what they found is told later, at random."""

    def __init__(self, world: World, random: Random) -> None:
        super().__init__(world.pause)
        self._random = random

    def completed(self) -> int:
        return 0 if self._random.random() < 0.4 else super().completed()


class ProcessLiveness:
    """A process of the world."""

    def __init__(self, process: SimulatedProcess) -> None:
        self._process = process

    def this_process(self) -> Process:
        return {"life": self._process.run}

    def gone(self, process: Process) -> bool:
        return process["life"] in self._process.world.ended


class SimulatedProcess:
    """A gateway, its realm, and the sockets between them and the network."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.run = f"{world.clock.now_ms():x}-{len(world.runs):04x}"
        self.dead = False
        self.congestion_bytes = world.shape.congestion_bytes
        self._connections: dict[Wire, tuple[Connection, Witness]] = {}
        self.log = WatchedLog(world.disk, world.disk_random, world.clock.now_ms, world.faults)
        self.log.answers = world.answers
        control = LateControl(world, world.disk_random)
        shape = world.shape
        self.realm = Realm(
            self.log,
            PREFIX,
            self.run,
            world.clock,
            Workers(control, control, control),
            shape.realm,
            liveness=ProcessLiveness(self),
        )
        raise_mistakes(self.realm)
        try:
            self.realm.open()
        except LogError:
            world.ended.add(self.run)
            self.log.kill()
            raise
        settings = Settings(
            (), EmbeddedRealm(shape.nowhere), MappingSettings("extended", None), NodeSettings(()),
            Security(("ANONYMOUS",), True), shape.limits, "basic",
        )  # fmt: skip
        self.gateway = Gateway(settings, self.realm, TABLES, world.clock)
        self.gateway.on_broken = self._broken
        document = json.dumps({**TABLES.expanded(), "stored_us": world.clock.epoch_us()})
        self.realm.append_evidence("tables", TABLES.digest.encode(), document.encode())

    # -- sockets

    def receive(self, wire: Wire, data: bytes) -> None:
        connection, witness = self._of(wire)
        self.world.note("in", data)
        witness.inbound(data)
        connection.receive(data)
        self.flush()

    def closed(self, wire: Wire) -> None:
        if not self.dead and wire in self._connections:
            connection, witness = self._connections.pop(wire)
            witness.lost()
            self.gateway.disconnect(connection)

    def _of(self, wire: Wire) -> tuple[Connection, Witness]:
        known = self._connections.get(wire)
        if known is None:
            witness = Witness(self.world.observers, self.run, self.world.places)
            known = self._connections[wire] = (self.gateway.connect(), witness)
            self.world.witnesses.append(known[1])
        return known

    def flush(self) -> None:
        """One write for each connection that has something to say."""
        touched = self.gateway.touched
        wires = {connection: wire for wire, (connection, _) in self._connections.items()}
        while touched:
            connection, _ = touched.popitem()
            wire = wires.get(connection)
            if wire is None:
                continue
            data = b"".join(connection.data_to_send())
            self.world.note("out", data)
            self._connections[wire][1].outbound(data)
            wire.to_client += data
            connection.write_pressure.set_congested(len(wire.to_client) > self.congestion_bytes)
            wire.ending = connection.closing and connection.engine.finished
        self.world.observers.flushed()

    def live_links(self) -> list[WireLink]:
        """The links that the peers of this run have now."""
        return [link for _, witness in self._connections.values() for link in witness.links if not link.gone]

    # -- turns

    def turn(self) -> None:
        for wire, (connection, _) in self._connections.items():
            connection.write_pressure.set_congested(len(wire.to_client) > self.congestion_bytes)
            if connection.transactions:
                connection.tick(self.world.clock.monotonic_s())
        self.gateway.poll()
        self.flush()

    @property
    def fenced(self) -> bool:
        return context_of(self.realm).journal.fenced

    def _broken(self, owner: Any) -> None:
        raise AssertionError(f"an answer could not be carried out, of {owner!r}")

    # -- ends

    def kill(self) -> None:
        """The process ends without a word."""
        self.dead = True
        self.world.ended.add(self.run)
        self.log.kill()
        for wire, (_, witness) in list(self._connections.items()):
            witness.lost()
            self.world.network.reset(wire)
        self.let_go()

    def let_go(self) -> None:
        """Give the engines' memory back, as the end of a process does."""
        for connection in self.gateway.connections:
            connection.engine.free()

    def stop(self) -> None:
        """As on SIGTERM: drain, say goodbye, close."""
        world, gateway = self.world, self.gateway
        gateway.stop()
        world.until(lambda: gateway.drained, _DRAIN_MS)
        gateway.close_connections()
        self.flush()
        world.until(lambda: not self._connections and gateway.outcomes.open == 0, _CLOSE_MS)
        for wire in list(self._connections):
            world.network.reset(wire)
        gateway.close_evidence()
        self.realm.close(_CLOSE_MS / 1000)
        self.dead = True


def start_process(world: World, attempts: int = 1000) -> SimulatedProcess:
    """A process that cannot open its realm ends, and is started again. It asks a lot, and each may fail."""
    for _ in range(attempts):
        try:
            return SimulatedProcess(world)
        except LogError:
            world.clock.advance(10)
    raise AssertionError(f"no gateway could be opened in {attempts} attempts")
