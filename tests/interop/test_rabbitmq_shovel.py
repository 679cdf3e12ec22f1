"""Debian's RabbitMQ moves what a queue holds into the gateway by its own AMQP 1.0 shovel, on both realms: counted here
and there."""

from __future__ import annotations

import re

from tests.interop.clients import cli_proton
from tests.kit.patience import HANG_S
from tests.kit.processes.gateway import GatewayProcess
from tests.kit.processes.rabbitmq import RabbitMQ
from tests.kit.processes.toolchains import NEEDS_RABBITMQ
from tests.kit.wire import frames
from tests.kit.wire.peer import Peer

COUNT = 500


@NEEDS_RABBITMQ
def test_a_shovel_moves_a_queue_into_the_gateway(gateway: GatewayProcess, rabbitmq: RabbitMQ) -> None:
    queue = f"letters-{gateway.realm_kind}"
    rabbit = f"guest:guest@127.0.0.1:{rabbitmq.port}//queue/{queue}"
    content = ["--msg-content", "letter %d.", "--msg-durable", "yes"]
    assert len(cli_proton("sender", "--broker-url", rabbit, "--count", str(COUNT), *content)) == COUNT
    rabbitmq.shovel(queue, gateway.address, "shoveled")
    with Peer(gateway.port) as peer:
        peer.consumer("shoveled", credit=COUNT + 10)
        came = peer.receive(COUNT, deadline_s=HANG_S)
        letters = [int(match[1]) for delivery in came if (match := re.search(rb"letter (\d+)\.", delivery.payload))]
        assert letters == list(range(COUNT)), "each once, in order"
        peer.settle([delivery.field(1) for delivery in came], frames.state("accepted"))
        peer.nothing()
    rabbitmq.await_empty(queue)
