"""Azure/go-amqp through a real gateway process, on both realms. Where there is no Go (README.md), it is not run."""

from __future__ import annotations

import shutil

import pytest

from tests.gateway_process import GatewayProcess
from tests.interop.clients import go_amqp, waiting

pytestmark = pytest.mark.skipif(shutil.which("go") is None, reason="Go is not installed")
COUNT = 500


def test_go_amqp_sends_and_receives(house: GatewayProcess) -> None:
    assert go_amqp("send", house.address, "go", COUNT) == f"accepted {COUNT}"
    assert go_amqp("receive", house.address, "go", COUNT) == f"received {COUNT} in order"


def test_go_amqp_settles_in_every_way(house: GatewayProcess) -> None:
    assert go_amqp("outcomes", house.address, "go-outcomes") == "released, modified, rejected at counts [0 0 1]"
    assert waiting(house, "go-outcomes") == 0


def test_go_amqp_selects(house: GatewayProcess) -> None:
    assert go_amqp("select", house.address, "go-selected", 20) == "selected, and the rest"


def test_go_amqp_moves_five_mebibytes_in_one_message(house: GatewayProcess) -> None:
    assert go_amqp("large", house.address, "go-large", 5) == f"{5 << 20} octets there and back"


def test_go_amqp_comes_back_to_a_durable_subscription(house: GatewayProcess) -> None:
    assert go_amqp("durable", house.address, "go-news") == "20 were waiting"


def test_go_amqp_takes_credit_back_and_settles_what_it_sends_first(house: GatewayProcess) -> None:
    assert go_amqp("drain", house.address, "go-drained") == "drained twice, then 3"
