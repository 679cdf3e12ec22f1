"""rhea through a real gateway process, on both realms: what it sends Qpid JMS receives (what it receives is in
`test_qpid_jms.py`), and it asks and answers. By TLS and WebSocket: `test_transports.py`."""

from __future__ import annotations

from tests.interop.clients import jms, rhea, rhea_asks
from tests.kit.processes.gateway import GatewayProcess

COUNT = 1000
QUESTIONS = 50


def test_rhea_sends_and_qpid_jms_receives(gateway: GatewayProcess) -> None:
    assert rhea("send", gateway.port, "from-rhea", COUNT)["accepted"] == COUNT
    assert jms("receive", f"amqp://{gateway.address}", "from-rhea", "0", str(COUNT)) == f"received {COUNT}"


def test_rhea_asks_from_a_dynamic_receiver_and_answers_on_an_anonymous_sender(gateway: GatewayProcess) -> None:
    report = rhea_asks(gateway.port, "questions-of-rhea", QUESTIONS)
    assert (report["answered"], report["wrong"]) == (QUESTIONS, [])
    assert report["address"].startswith("temporary:client-")
