"""JMS 2.0's contexts by Qpid JMS, on both realms: acknowledgement by the client, time to live and dead letters, large
messages and one that is too large, every kind of message."""

from __future__ import annotations

import pytest

from tests.interop.clients import jms
from tests.interop.conftest import LARGEST
from tests.kit.processes.gateway import GatewayProcess


@pytest.mark.timeout(300)  # megabytes, and on a busy machine
def test_qpid_jms_by_contexts(gateway: GatewayProcess) -> None:
    gateway.command("node", "create", "contexts.dead")
    gateway.command("node", "create", "contexts.expiring", "--dead-letter", "contexts.dead")
    assert jms(f"amqp://{gateway.address}", "contexts", str(LARGEST), program="Contexts") == "as JMS has it"
