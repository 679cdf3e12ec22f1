"""Selectors and browsers of Qpid JMS, through a real gateway process, on both realms."""

from __future__ import annotations

from tests.gateway_process import GatewayProcess
from tests.interop.clients import jms


def test_qpid_jms_selects_from_a_queue_and_browses_it(house: GatewayProcess) -> None:
    assert jms("queue", f"amqp://{house.address}", "selected", program="Selecting") == "selected"


def test_qpid_jms_selects_from_a_topic(house: GatewayProcess) -> None:
    assert jms("topic", f"amqp://{house.address}", "selected-news", "me", program="Selecting") == "selected"
