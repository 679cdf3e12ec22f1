"""Azure/go-amqp through a real gateway process, on both realms. Where there is no Go (README.md), it is not run."""

from __future__ import annotations

from tests.interop.clients import go_amqp, waiting
from tests.kit.processes.gateway import GatewayProcess
from tests.kit.processes.toolchains import NEEDS_GO

pytestmark = NEEDS_GO
COUNT = 500


def test_go_amqp_sends_and_receives(gateway: GatewayProcess) -> None:
    assert go_amqp("send", gateway.address, "go", COUNT) == f"accepted {COUNT}"
    assert go_amqp("receive", gateway.address, "go", COUNT) == f"received {COUNT} in order"


def test_go_amqp_settles_in_every_way(gateway: GatewayProcess) -> None:
    assert go_amqp("outcomes", gateway.address, "go-outcomes") == "released, modified, rejected at counts [0 0 1]"
    assert waiting(gateway, "go-outcomes") == 0


def test_go_amqp_selects(gateway: GatewayProcess) -> None:
    assert go_amqp("select", gateway.address, "go-selected", 20) == "selected, and the rest"


def test_go_amqp_moves_fifteen_mebibytes_in_one_message(gateway: GatewayProcess) -> None:
    assert go_amqp("large", gateway.address, "go-large", 15) == f"{15 << 20} octets there and back"


def test_go_amqp_comes_back_to_a_durable_subscription(gateway: GatewayProcess) -> None:
    assert go_amqp("durable", gateway.address, "go-news") == "20 were waiting"


def test_go_amqp_takes_credit_back_and_settles_what_it_sends_first(gateway: GatewayProcess) -> None:
    assert go_amqp("drain", gateway.address, "go-drained") == "drained twice, then 3"
