"""`realmgate drain` from Debian's RabbitMQ, by its AMQP 1.0, into the gateway, on both realms: counted here and there.

RabbitMQ 3.10 breaks at a drain of credit, so the queue is empty when nothing comes any more.
"""

from __future__ import annotations

import json

from tests.interop.clients import cli_proton
from tests.kit.patience import HANG_S
from tests.kit.processes.gateway import GatewayProcess
from tests.kit.processes.rabbitmq import RabbitMQ
from tests.kit.processes.toolchains import NEEDS_RABBITMQ
from tests.kit.wire import frames
from tests.kit.wire.peer import Peer

COUNT = 500


@NEEDS_RABBITMQ
def test_a_drain_moves_a_queue_into_the_gateway(gateway: GatewayProcess, rabbitmq: RabbitMQ) -> None:
    queue, node = f"bills-{gateway.realm_kind}", "drained"
    url = f"amqp://guest:guest@127.0.0.1:{rabbitmq.port}"
    content = ["--msg-content", "bill %d.", "--msg-durable", "yes"]
    rabbit = url.removeprefix("amqp://") + f"//queue/{queue}"
    assert len(cli_proton("sender", "--broker-url", rabbit, "--count", str(COUNT), *content)) == COUNT
    words = ["--to", node, "--ledger", f"drain.{node}", "--empty-after", "3", "--json"]
    output = json.loads(gateway.command("drain", url, f"/queue/{queue}", *words))
    assert (output["stored"], output["refused"], output["differences"]) == (COUNT, 0, []), output
    with Peer(gateway.port) as peer:
        peer.consumer(node, credit=COUNT + 10)
        came = peer.receive(COUNT, deadline_s=HANG_S)
        assert all(b"bill %d." % number in delivery.payload for number, delivery in enumerate(came)), "in order"
        peer.settle([delivery.field(1) for delivery in came], frames.state("accepted"))
        peer.nothing()
    rabbitmq.await_empty(queue)
