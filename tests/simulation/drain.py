"""How a world is drained: faults end, what is under way is finished, then consumers take everything that is left."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulation.peers.client import Client
from tests.simulation.walk import QUEUES

if TYPE_CHECKING:
    from tests.simulation.world import World

_QUIET_MS, _IDLE_MS, _DRAIN_MS = 600, 80, 6000
_CREDIT = 10


def drain(world: World) -> None:
    """Leaves every receiver drained, and nothing anywhere under way."""
    for wire in world.network.wires:
        wire.deaf = False
    world.until(lambda: False, _QUIET_MS)
    if world.process.fenced:  # perhaps by a transaction that was on its way when the faults ended
        world.restart(in_order=False)
        world.until(lambda: False, _QUIET_MS)
    for checker in world.checkers:
        checker.at_quiet()
    for client in world.clients:
        if client.wire is not None:
            world.network.reset(client.wire)
        client.connect(world.network, world)
        for name, node in client.durables.items():
            client.consume_from(name, node, durable=True, settled=False, second=False)
    for node in QUEUES:
        world.clients[0].consume_from(f"last-{node}", node, durable=False, settled=False, second=False)
    _take_all(world)
    for client in world.clients:
        for receiver in client.receivers.values():
            receiver.drain(1)
        client.flush()
    world.until(lambda: False, _IDLE_MS)


def _take_all(world: World) -> None:
    """Accept whatever comes, until nothing has come for a while."""
    idle = 0
    for _ in range(_DRAIN_MS):
        taken = sum(_accept(client) for client in world.clients)
        idle = 0 if taken else idle + 1
        if idle > _IDLE_MS:
            return
        world.until(lambda: False, 1)


def _accept(client: Client) -> int:
    held, client.held = client.held, []
    for at, (_, delivery) in enumerate(held):
        client.state(delivery, "accepted", settle=at % 2 == 0)
    for receiver in client.receivers.values():
        if receiver.credit < _CREDIT:
            receiver.flow(_CREDIT - receiver.credit)
    client.flush()
    return len(held)
