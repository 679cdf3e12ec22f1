"""What JMS 2.0 asks of a delivery, by Qpid JMS through a real gateway, on both realms."""

from __future__ import annotations

from tests.gateway_process import GatewayProcess
from tests.interop.clients import jms


def test_qpid_jms_delays_groups_leaves_out_its_own_and_acknowledges_each(house: GatewayProcess) -> None:
    assert jms("all", f"amqp://{house.address}", "deliver", program="Delivering") == "delivered"


def test_a_delivery_time_outlives_a_restart(house: GatewayProcess) -> None:
    due = jms("later", f"amqp://{house.address}", "deliver.later", program="Delivering")
    assert house.stop() == 0
    house.start()
    assert jms("due", f"amqp://{house.address}", "deliver.later", due, program="Delivering") == "due"
