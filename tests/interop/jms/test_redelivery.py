"""What a JMS application gets again when it does not keep what it got: one Qpid JMS program, at Artemis and through a
real gateway on both realms. Source: JMS 2.0 sections 6.2.7, 6.2.10 and 8.7; H-7, W-4."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.interop.clients import jms
from tests.kit.processes.artemis import Artemis
from tests.kit.processes.gateway import GatewayProcess

ENDINGS = ("commit", "rollback", "rollback-of-some", "recover", "listener-throws", "close", "close-transacted")
Report = Callable[[str], str]


@pytest.fixture(scope="module")
def at_artemis(artemis: Artemis) -> Report:
    """What Artemis does; asked once for all realms."""
    reports: dict[str, str] = {}

    def run(where: str) -> str:
        if where not in reports:
            reports[where] = jms(f"amqp://{artemis.address}", "again", where, program="Redelivering")
        return reports[where]

    return run


@pytest.mark.timeout(600)
@pytest.mark.parametrize("where", ["queue", "topic", "durable", "shared", "shared-durable"])
def test_what_is_not_kept_comes_again_as_at_artemis(gateway: GatewayProcess, at_artemis: Report, where: str) -> None:
    expected = at_artemis(where)
    assert tuple(line.partition(":")[0] for line in expected.splitlines()) == ENDINGS
    assert jms(f"amqp://{gateway.address}", "again", where, program="Redelivering") == expected
