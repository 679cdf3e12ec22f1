"""python-qpid-proton's own `Container` and its transaction client, through a real gateway process, on both realms."""

from __future__ import annotations

from tests.interop.clients import container, waiting
from tests.kit.processes.gateway import GatewayProcess

COUNT = 200


def test_a_container_sends_and_receives(gateway: GatewayProcess) -> None:
    assert container("send", gateway.address, "container-plain", COUNT) == {"accepted": COUNT}
    assert container("receive", gateway.address, "container-plain", COUNT) == {"in order": True, "each once": True}


def test_a_containers_transactions_move_messages_all_or_none(gateway: GatewayProcess) -> None:
    assert container("send", gateway.address, "container-from", COUNT) == {"accepted": COUNT}
    moved = container("transfer", gateway.address, "container-from", "container-to", COUNT, 10)
    assert moved == {"declared": COUNT // 10 + 1, "committed": COUNT, "aborted": 10}
    assert container("receive", gateway.address, "container-to", COUNT)["each once"]
    assert waiting(gateway, "container-from") == waiting(gateway, "container-to") == 0, (
        "nothing is left of the roll-back"
    )
