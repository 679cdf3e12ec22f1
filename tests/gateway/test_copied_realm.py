"""The embedded realm is a folder: what a gateway left there, in order or by kill -9, is all there in a copy of it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.kit.processes.gateway import GatewayProcess, embedded_realm, start_gateway
from tests.kit.wire import frames
from tests.kit.wire.peer import Peer

ACCEPTED = frames.state("accepted")
DURABLE = frames.source("news", durable=2, capability="topic")


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[str], GatewayProcess]]:
    """A gateway on the realm in that directory; none outlives the test."""
    made: list[GatewayProcess] = []

    def gateway(name: str) -> GatewayProcess:
        made.append(start_gateway(tmp_path / name, embedded_realm(tmp_path / name)))
        return made[-1]

    yield gateway
    for server in made:
        server.kill()


@pytest.mark.parametrize("killed", [True, False])
def test_a_copy_of_the_folder_is_the_realm_and_goes_its_own_way(
    tmp_path: Path, start: Callable[[str], GatewayProcess], killed: bool
) -> None:
    gateway = start("first")
    with Peer(gateway.port, container="reader") as peer:
        peer.consumer(DURABLE, name="durably", handle=2)
        for node, kind in (("orders", "queue"), ("news", "channel")):
            peer.stored(node, *(frames.message(b"%d" % number) for number in range(10)), kind=kind)
        peer.consumer("orders", credit=10)
        came = peer.receive(10)
        peer.settle([seen.field(1) for seen in came[::2]], ACCEPTED, settled=False)
        assert set(peer.outcomes(5).values()) == {"accepted"}
    if killed:
        gateway.kill()
    else:
        assert gateway.stop() == 0
    shutil.copytree(tmp_path / "first" / "realm", tmp_path / "second" / "realm")
    gateway.start()
    copy = start("second")
    for server in (gateway, copy):
        what_is_left(server)
        assert server.stop() == 0, server.log()


def what_is_left(gateway: GatewayProcess) -> None:
    with Peer(gateway.port, container="reader") as peer:
        peer.consumer("orders", credit=10)
        came = peer.receive(5)
        assert [seen.payload[-1:] for seen in came] == [b"1", b"3", b"5", b"7", b"9"]
        peer.consumer(DURABLE, name="durably", handle=2, credit=10)
        assert [seen.payload[-1:] for seen in peer.receive(10, handle=2)] == [b"%d" % number for number in range(10)]
        peer.settle([seen.field(1) for seen in came], ACCEPTED, settled=False)
        assert set(peer.outcomes(5).values()) == {"accepted"}
