"""What JMS 2.0 asks of a delivery, by Qpid JMS through a real gateway, on both realms."""

from __future__ import annotations

from tests.interop.clients import jms
from tests.kit.processes.gateway import GatewayProcess


def test_qpid_jms_delays_groups_leaves_out_its_own_and_acknowledges_each(gateway: GatewayProcess) -> None:
    assert jms("all", f"amqp://{gateway.address}", "deliver", program="Delivering") == "delivered"


def test_a_delivery_time_outlives_a_restart(gateway: GatewayProcess) -> None:
    due = jms("later", f"amqp://{gateway.address}", "deliver.later", program="Delivering")
    assert gateway.stop() == 0
    gateway.start()
    assert jms("due", f"amqp://{gateway.address}", "deliver.later", due, program="Delivering") == "due"
