"""Two gateway processes on one realm: one serves, the other waits and follows; nothing accepted is lost on the way."""

from __future__ import annotations

import os
import signal
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kit.processes.broker import free_port
from tests.kit.processes.gateway import GatewayProcess, embedded_realm, kafka_realm, make_gateway
from tests.kit.wire import frames
from tests.kit.wire.failover import NODE, Traffic, message
from tests.kit.wire.peer import Peer

Make = Callable[..., GatewayProcess]
WAITS = "this gateway listens when that one ends"
LEASE_MS = 15_000  # longer than a busy machine stalls


@pytest.fixture(params=["embedded", "kafka"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Make]:
    """Gateways of one realm, each with a port that stays."""
    made: list[GatewayProcess] = []
    realm: dict[str, Any]
    if request.param == "kafka":
        realm = kafka_realm(request.getfixturevalue("kafka_bootstrap"), f"t{uuid.uuid4().hex[:8]}")
    else:
        realm = embedded_realm(tmp_path)

    def gateway(**settings: Any) -> GatewayProcess:
        made.append(make_gateway(tmp_path / f"gateway-{len(made)}", realm, **settings))
        made[-1].port = free_port()
        return made[-1]

    yield gateway
    for server in made:
        if server.process is not None:
            server.kill()


def pair(make: Make, **settings: Any) -> tuple[GatewayProcess, GatewayProcess]:
    """One that serves and one that waits."""
    first, second = make(**settings), make(**settings)
    first.start()
    second.launch()
    second.await_log(WAITS)
    return first, second


def test_two_gateways_are_restarted_in_turn_and_killed_under_load_and_nothing_is_lost(make: Make) -> None:
    first, second = pair(make)
    traffic = Traffic([first.port, second.port])
    traffic.await_progress()
    for serving, waiting in ((first, second), (second, first)):
        assert serving.stop() == 0
        waiting.await_ready()
        serving.launch()
        serving.await_log(f"gateway {_run_of(waiting)} ")
        traffic.await_progress()
    first.kill()
    second.await_ready()
    traffic.await_progress()
    assert traffic.finish() == set()
    assert second.stop() == 0


@pytest.mark.parametrize("make", ["kafka"], indirect=True)  # stopped in a write it would keep SQLite's lock
def test_a_stopped_gateway_is_followed_and_when_it_wakes_it_says_so_closes_its_links_and_ends(make: Make) -> None:
    first, second = pair(make, limits={"lease_ms": LEASE_MS})
    with Peer(first.port) as old:
        old.stored(NODE, *map(message, range(20)))
        old.consumer(NODE, credit=10)
        given = [seen.payload for seen in old.receive(10)]
        os.kill(first.pid, signal.SIGSTOP)
        second.await_ready()
        with Peer(second.port) as new:
            new.consumer(NODE, credit=20)
            received = new.receive(20)
            assert [seen.payload[-8:] for seen in received[:10]] == [payload[-8:] for payload in given]
            new.settle([seen.field(1) for seen in received], frames.state("accepted"))
            os.kill(first.pid, signal.SIGCONT)
            old.settle([0], frames.state("accepted"))
            old.credit(20)
            assert first.await_exit() == 3
            assert old.closed()
            names = [seen.name for seen in old.seen]
            assert "detach" in names
            assert "transfer" not in names, "it gave out what another one owns"
            assert (old.seen[-1].name, old.seen[-1].condition) == ("close", "amqp:connection:forced")
            assert "another gateway has taken over the realm" in first.log()
            new.stored(NODE, message(99))
            new.credit(1)
            assert b"#99#" in new.receive(1)[0].payload
    assert second.stop() == 0


@pytest.mark.parametrize("make", ["embedded"], indirect=True)
def test_a_standby_ends_in_order_on_a_signal(make: Make) -> None:
    first, second = pair(make)
    began_s = time.monotonic()
    assert second.stop() == 0
    assert time.monotonic() - began_s < 60
    with Peer(first.port) as peer:
        peer.stored(NODE, message(1))
    assert first.stop() == 0


def _run_of(gateway: GatewayProcess) -> str:
    """The run of a gateway that is up: its container's name says it."""
    with Peer(gateway.port, begin=False) as peer:
        peer.send(frames.AMQP_HEADER, frames.open_("asks"), frames.begin())
        return str(peer.expect("open").field(0)).removeprefix("realmgate-")
