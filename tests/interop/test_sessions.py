"""Many sessions of one connection, the largest messages and short time-outs, by foreign clients on both realms."""

from __future__ import annotations

import pytest

from tests.interop.clients import jms, rhea_sessions, waiting
from tests.kit.processes.gateway import GatewayProcess

SESSIONS = 200


@pytest.mark.timeout(300)
def test_qpid_jms_has_two_hundred_sessions_on_one_connection(gateway: GatewayProcess) -> None:
    output = jms("many", f"amqp://{gateway.address}", "jms-many", str(SESSIONS), program="Sessions")
    assert output == f"{SESSIONS} sessions sent and received"


@pytest.mark.timeout(300)
def test_qpid_jms_moves_fifteen_mebibytes_in_a_transaction(gateway: GatewayProcess) -> None:
    output = jms("large", f"amqp://{gateway.address}", "jms-large", "15", program="Sessions")
    assert output == f"{15 << 20} octets there and back"


def test_rhea_closes_links_and_two_hundred_sessions_in_one_breath_each(gateway: GatewayProcess) -> None:
    """A DETACH for each link that it closed, an END for each session, and nothing that it did not expect."""
    report = rhea_sessions("burst", gateway.port, "rhea-burst", SESSIONS)
    assert report == {
        "accepted": SESSIONS,
        "links_closed": SESSIONS,
        "sessions_closed": SESSIONS,
        "octets": 0,
        "error": "",
    }
    assert waiting(gateway, "rhea-burst") == 10  # as many as are shown


def test_rhea_moves_fifteen_mebibytes_in_one_message(gateway: GatewayProcess) -> None:
    report = rhea_sessions("large", gateway.port, "rhea-large", 15)
    assert (report["accepted"], report["octets"]) == (1, 15 << 20)


@pytest.mark.parametrize("idle_ms", [200, 1_000])
def test_rhea_is_kept_by_heartbeats(gateway: GatewayProcess, idle_ms: int) -> None:
    """It gives a connection up on which it hears nothing for so long; it does nothing but read."""
    assert rhea_sessions("idle", gateway.port, "any", idle_ms)["error"] == ""
