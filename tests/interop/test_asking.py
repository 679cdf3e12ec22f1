"""Request and reply by clients that others wrote: temporary queues and topics, producers without a destination, on both
realms.
"""

from __future__ import annotations

import pytest

from tests.conftest import StartGateway
from tests.interop.clients import jms, rhea_asks

REALMS = ["embedded", "kafka"]
COUNT = 50


@pytest.mark.parametrize("realm", REALMS)
def test_qpid_jms_asks_and_is_answered_in_a_transaction_at_a_temporary_queue(gateway: StartGateway, realm: str) -> None:
    served = gateway(realm)
    served.command("node", "create", "questions")
    url = f"amqp://{served.address}"
    assert jms("ask", url, "questions", str(COUNT), program="Asking") == f"answered {COUNT}"
    assert jms("topic", url, str(COUNT), program="Asking") == f"heard {COUNT}"
    assert jms("gone", url, "questions", program="Asking") == "gone"
    assert served.command("node", "list").count("temporary") == 0, "all have ended with their connections"


@pytest.mark.parametrize("realm", REALMS)
def test_rhea_asks_from_a_dynamic_receiver_and_answers_on_an_anonymous_sender(
    gateway: StartGateway, realm: str
) -> None:
    served = gateway(realm)
    served.command("node", "create", "questions")
    report = rhea_asks(served.port, "questions", COUNT)
    assert (report["answered"], report["wrong"]) == (COUNT, [])
    assert report["address"].startswith("temporary:client-")
