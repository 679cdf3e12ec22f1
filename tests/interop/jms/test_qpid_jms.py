"""Qpid JMS through a real gateway process, on both realms: queues, transacted sessions, priorities, a durable
subscriber. Counts and bodies must agree; rhea receives what it sends, so that neither flatters itself.
"""

from __future__ import annotations

from tests.interop.clients import jms, rhea
from tests.kit.processes.gateway import GatewayProcess

COUNT = 1000


def test_qpid_jms_sends_and_rhea_receives(gateway: GatewayProcess) -> None:
    assert jms("send", f"amqp://{gateway.address}", "from-jms", "0", str(COUNT)) == f"accepted {COUNT}"
    report = rhea("receive", gateway.port, "from-jms", COUNT)
    assert (report["received"], report["distinct"], report["wrong"]) == (COUNT, COUNT, [])


def test_a_transacted_session_moves_messages_all_or_none(gateway: GatewayProcess) -> None:
    url = f"amqp://{gateway.address}"
    assert jms("send", url, "from", "0", "100") == "accepted 100"
    assert jms("transfer", url, "from", "to", "0", "100") == "transferred 100"
    assert jms("receive", url, "to", "0", "100") == "received 100", "each once, and nothing of what was rolled back"


def test_priorities_are_kept_by_a_node_with_ten_levels(gateway: GatewayProcess) -> None:
    gateway.command("node", "create", "urgent", "--priority-levels", "10")
    assert jms("priorities", f"amqp://{gateway.address}", "urgent", "200") == "in order 200"


def test_a_durable_subscriber_survives_a_gateway_restart(gateway: GatewayProcess) -> None:
    url = f"amqp://{gateway.address}"
    me = ("interop-client", "interop-subscription")
    jms("durable", url, "news", "0", "0", *me)
    jms("publish", url, "news", "0", "100")
    assert jms("durable", url, "news", "0", "60", *me) == "received 60"
    assert gateway.stop() == 0
    gateway.start()
    jms("publish", url, "news", "100", "50")
    assert jms("durable", url, "news", "60", "90", *me) == "received 90", (
        "the 40 left before the restart, and 50 after it"
    )
    assert jms("none-left", url, "news", *me) == "none left"
