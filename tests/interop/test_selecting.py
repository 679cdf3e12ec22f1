"""Selectors and browsers of Qpid JMS, through a real gateway process, on both realms."""

from __future__ import annotations

import pytest

from tests.conftest import StartGateway
from tests.interop.clients import jms

REALMS = ["embedded", "kafka"]


@pytest.mark.parametrize("realm", REALMS)
def test_qpid_jms_selects_from_a_queue_and_browses_it(gateway: StartGateway, realm: str) -> None:
    assert jms("queue", f"amqp://{gateway(realm).address}", "selected", program="Selecting") == "selected"


@pytest.mark.parametrize("realm", REALMS)
def test_qpid_jms_selects_from_a_topic(gateway: StartGateway, realm: str) -> None:
    assert jms("topic", f"amqp://{gateway(realm).address}", "news", "me", program="Selecting") == "selected"
