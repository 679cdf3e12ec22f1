"""What JMS 2.0 asks of a delivery, by Qpid JMS through a real gateway, on both realms."""

from __future__ import annotations

import pytest

from tests.conftest import StartGateway
from tests.interop.clients import jms

REALMS = ["embedded", "kafka"]


@pytest.mark.parametrize("realm", REALMS)
def test_qpid_jms_delays_groups_leaves_out_its_own_and_acknowledges_each(gateway: StartGateway, realm: str) -> None:
    assert jms("all", f"amqp://{gateway(realm).address}", "deliver", program="Delivering") == "delivered"


@pytest.mark.parametrize("realm", REALMS)
def test_a_delivery_time_outlives_a_restart(gateway: StartGateway, realm: str) -> None:
    served = gateway(realm)
    due = jms("later", f"amqp://{served.address}", "deliver.later", program="Delivering")
    assert served.stop() == 0
    served.start()
    assert jms("due", f"amqp://{served.address}", "deliver.later", due, program="Delivering") == "due"
