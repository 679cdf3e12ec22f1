"""The walk of docs/how-to/migrate-a-jms-application.md, really done: a Spring JMS application and what its queue holds
leave Artemis for the gateway, on either realm, and reconciliation finds nothing lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interop.clients import spring, waiting
from tests.kit.processes.artemis import Artemis
from tests.kit.processes.gateway import StartGateway, reconciled

BACKLOG, LATER = 200, 50


@pytest.mark.timeout(600)
@pytest.mark.parametrize("realm", ["embedded", "kafka"])
def test_an_application_and_its_backlog_leave_artemis(
    new_gateway: StartGateway, artemis: Artemis, tmp_path: Path, realm: str
) -> None:
    served = new_gateway(realm)
    for queue in ("orders", "invoices"):
        served.command("node", "create", queue, "--kind", "queue")
    old, new = f"amqp://{artemis.address}", f"failover:(amqp://{served.address})"
    assert spring("order", old, "orders", 0, BACKLOG) == f"ordered {BACKLOG}"
    assert spring("order", new, "orders", BACKLOG, LATER) == f"ordered {LATER}", "producers go first"
    assert spring("move", old, "orders", new, "orders", BACKLOG) == f"moved {BACKLOG}"
    assert spring("move", old, "orders", new, "orders", 0) == "moved 0", "nothing is left behind"
    assert spring("serve", new, "orders", "invoices", BACKLOG + LATER).endswith(f"dealt with {BACKLOG + LATER}")
    assert waiting(served, "orders") == 0
    done = reconciled(served.config_path, tmp_path / "report")
    assert (done.returncode, "Verdict: CLEAN" in done.stdout) == (0, True), done.stdout + done.stderr
