"""Request and reply by Qpid JMS, on both realms: temporary queues and topics, producers without a destination."""

from __future__ import annotations

from tests.interop.clients import jms
from tests.kit.processes.gateway import GatewayProcess

COUNT = 50


def test_qpid_jms_asks_and_is_answered_in_a_transaction_at_a_temporary_queue(gateway: GatewayProcess) -> None:
    gateway.command("node", "create", "questions")
    url = f"amqp://{gateway.address}"
    assert jms("ask", url, "questions", str(COUNT), program="Asking") == f"answered {COUNT}"
    assert jms("topic", url, str(COUNT), program="Asking") == f"heard {COUNT}"
    assert jms("gone", url, "questions", program="Asking") == "gone"
    assert jms("own", url, program="Asking") == "own"
    assert gateway.command("node", "list").count("temporary") == 0, "all have ended with their connections"
