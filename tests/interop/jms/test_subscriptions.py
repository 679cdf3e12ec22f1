"""Subscriptions as JMS 2.0 has them, by Qpid JMS through a real gateway, on both realms: shared and not, durable and
not, and their end."""

from __future__ import annotations

import pytest

from tests.interop.clients import jms
from tests.kit.processes.gateway import GatewayProcess

ME = "interop-client"


def test_shared_consumers_share_durable_or_not_of_one_client_or_of_all(gateway: GatewayProcess) -> None:
    url = f"amqp://{gateway.address}"
    jms("durable", url, "shared-news", "0", "0", ME, "another")  # makes the topic
    for at, how in enumerate(("durable", "volatile")):
        for client in (ME, "-"):
            assert jms("share", url, "shared-news", "0", "90", how, client, f"s{at}") == "shared 90 by 3"
    held = gateway.command("durable", "list", "shared-news")
    assert [f"{ME}:s0" in held, " :s0 " in held, "volatile" in held] == [True, True, False]
    assert jms("unsubscribe", url, ME, "s0") == "unsubscribed"
    assert jms("unsubscribe-global", url, "s0") == "unsubscribed"
    held = gateway.command("durable", "list", "shared-news")
    assert [f"{ME}:s0" in held, " :s0 " in held, f"{ME}:another" in held] == [False, False, True]


def test_a_durable_has_one_consumer_until_it_is_unsubscribed(gateway: GatewayProcess) -> None:
    url = f"amqp://{gateway.address}"
    jms("durable", url, "own-news", "0", "0", ME, "mine")
    assert jms("second", url, "own-news", ME, "mine") == "amqp:not-allowed amqp:not-allowed"
    jms("publish", url, "own-news", "0", "10")
    assert jms("unsubscribe", url, ME, "mine") == "unsubscribed"
    with pytest.raises(RuntimeError, match=r"does not exist|not-found"):
        jms("unsubscribe", url, ME, "mine")
    assert jms("none-left", url, "own-news", ME, "mine") == "none left", "it begins anew"
