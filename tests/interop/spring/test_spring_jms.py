"""A Spring JMS application (transacted listener container, pooled connections, failover URL) lives through a restart of
the gateway, on both realms."""

from __future__ import annotations

import pytest

from tests.interop.clients import spring, spring_beside
from tests.kit.processes.gateway import GatewayProcess

FAILOVER = "failover.maxReconnectAttempts=600&failover.reconnectDelay=50&failover.useReconnectBackOff=false"


@pytest.mark.timeout(400)
def test_a_listener_container_lives_through_a_gateway_restart(gateway: GatewayProcess) -> None:
    url = f"failover:(amqp://{gateway.address})?{FAILOVER}"  # a pooled producer is anonymous
    assert spring("order", url, "orders", 0, 300) == "ordered 300"
    with spring_beside("serve", url, "orders", "invoices", 400) as serving:
        assert serving.stdout is not None and serving.stdout.readline() == "half\n"
        with spring_beside("order", url, "orders", 300, 100) as ordering:
            gateway.restart()
            assert ordering.stdout is not None and ordering.stdout.read() == "ordered 100\n"
        assert serving.stdout.read() == "dealt with 400\n"
    assert spring("serve", url, "invoices", "archive", 400) == "half\ndealt with 400", "an invoice for each order"
