"""Selectors and browsers of Qpid JMS, through a real gateway process, on both realms."""

from __future__ import annotations

from tests.interop.clients import jms
from tests.kit.processes.gateway import GatewayProcess


def test_qpid_jms_selects_from_a_queue_and_browses_it(gateway: GatewayProcess) -> None:
    assert jms("queue", f"amqp://{gateway.address}", "selected", program="Selecting") == "selected"


def test_qpid_jms_selects_from_a_topic(gateway: GatewayProcess) -> None:
    assert jms("topic", f"amqp://{gateway.address}", "selected-news", "me", program="Selecting") == "selected"
