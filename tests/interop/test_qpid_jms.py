"""Clients that others wrote, through a real gateway process, on both realms: counts and bodies must agree.

Qpid JMS and rhea each send 1,000 and each receive 1,000, crosswise, so that neither flatters itself.
"""

from __future__ import annotations

import pytest

from tests.conftest import StartGateway
from tests.interop.clients import jms, load, rhea

REALMS = ["embedded", "kafka"]
COUNT = 1000


@pytest.mark.parametrize("realm", REALMS)
def test_qpid_jms_sends_and_rhea_receives(gateway: StartGateway, realm: str) -> None:
    served = gateway(realm)
    url = f"amqp://{served.address}"
    assert jms("send", url, "from-jms", "0", str(COUNT)) == f"accepted {COUNT}"
    report = rhea("receive", served.port, "from-jms", COUNT)
    assert (report["received"], report["distinct"], report["wrong"]) == (COUNT, COUNT, [])


@pytest.mark.parametrize("realm", REALMS)
def test_rhea_sends_and_qpid_jms_receives(gateway: StartGateway, realm: str) -> None:
    served = gateway(realm)
    assert rhea("send", served.port, "from-rhea", COUNT)["accepted"] == COUNT
    assert jms("receive", f"amqp://{served.address}", "from-rhea", "0", str(COUNT)) == f"received {COUNT}"


@pytest.mark.parametrize("realm", REALMS)
def test_a_transacted_jms_session_moves_messages_all_or_none(gateway: StartGateway, realm: str) -> None:
    served = gateway(realm)
    url = f"amqp://{served.address}"
    assert jms("send", url, "from", "0", "100") == "accepted 100"
    assert jms("transfer", url, "from", "to", "0", "100") == "transferred 100"
    assert jms("receive", url, "to", "0", "100") == "received 100", "each once, and nothing of what was rolled back"


@pytest.mark.parametrize("realm", REALMS)
def test_jms_priorities_are_kept_by_a_node_with_ten_levels(gateway: StartGateway, realm: str) -> None:
    served = gateway(realm)
    served.command("node", "create", "urgent", "--priority-levels", "10")
    assert jms("priorities", f"amqp://{served.address}", "urgent", "200") == "in order 200"


@pytest.mark.parametrize("realm", REALMS)
def test_a_jms_durable_subscriber_survives_a_gateway_restart(gateway: StartGateway, realm: str) -> None:
    served = gateway(realm)
    url = f"amqp://{served.address}"
    me = ("interop-client", "interop-subscription")
    jms("durable", url, "news", "0", "0", *me)
    jms("publish", url, "news", "0", "100")
    assert jms("durable", url, "news", "0", "60", *me) == "received 60"
    assert served.stop() == 0
    served.start()
    jms("publish", url, "news", "100", "50")
    assert jms("durable", url, "news", "60", "90", *me) == "received 90", (
        "the 40 left before the restart, and 50 after it"
    )
    assert jms("none-left", url, "news", *me) == "none left"


@pytest.mark.parametrize("realm", REALMS)
def test_the_load_client_moves_100_000(gateway: StartGateway, realm: str) -> None:
    served = gateway(realm)
    sent = load("send", served.address, "load", "--count", "100000", "--in-flight", "1000")
    assert sent["accepted"] == 100_000
    got = load("receive", served.address, "load", "--count", "100000", "--in-flight", "1000", "--settle")
    assert (got["distinct"], got["again"], got["foreign"]) == (100_000, 0, 0)
