"""A mistake of ours in a part of the turn: the rest goes on, and /health, the metrics and the log say so.

A real gateway, in which that part raises."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.gateway.admin.failing_gateway import BROKEN, FAILS, STEPS
from tests.gateway.admin.shown_problems import ADMIN, is_shown, is_well, problem
from tests.kit.processes.admin_pages import Watch
from tests.kit.processes.gateway import GatewayProcess, embedded_realm, make_gateway
from tests.kit.wire.peer import Peer
from tests.kit.wire.reloading import MESSAGE


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[GatewayProcess]:
    gateway = make_gateway(tmp_path, embedded_realm(tmp_path), admin=ADMIN)
    gateway.program = [sys.executable, "-m", "tests.gateway.admin.failing_gateway"]
    gateway.environment = {FAILS: str(tmp_path / "fails")}
    gateway.start()
    yield gateway
    gateway.stop()


def plant(gateway: GatewayProcess, name: str | None) -> None:
    file = Path(gateway.environment[FAILS])
    if name is None:
        file.unlink()
    else:
        file.write_text(name)


@pytest.mark.parametrize("step", STEPS)
def test_a_step_that_fails_keeps_peers_out_until_it_works(gateway: GatewayProcess, step: str) -> None:
    watch = Watch.of(gateway)
    watch.until(lambda: is_well(watch))
    plant(gateway, step)
    watch.until(lambda: is_shown(watch, "turn-fails", step))
    shown, words = watch.health(), problem(watch, "turn-fails", step)
    assert (shown["status"], shown["state"]) == (503, "turn-fails")
    assert words is not None and "planted" in words["detail"] and "traceback" in words["remedy"]
    assert watch.metrics()["realmgate_ready", ()] == 0
    plant(gateway, None)
    watch.until(lambda: watch.health()["status"] == 200)
    assert problem(watch, "turn-fails", step) is None
    assert problem(watch, "alarm", "mistakes") is not None, "an operator sees it for an hour"
    assert (
        f"a step of the turn failed: {step}" in gateway.log_path.read_text()
        and "Traceback" in gateway.log_path.read_text()
    )
    with Peer(gateway.port) as peer:
        peer.publisher("orders")
        assert set(peer.outcomes(len(peer.publish(MESSAGE))).values()) == {"accepted"}


@pytest.mark.parametrize("part", ["counting", "topic watch"])
def test_what_peers_can_be_served_without_is_an_alarm(gateway: GatewayProcess, part: str) -> None:
    watch = Watch.of(gateway)
    watch.until(lambda: is_well(watch))
    plant(gateway, part)
    watch.until(lambda: is_shown(watch, "alarm", "mistakes"))
    assert (watch.health()["status"], watch.health()["state"]) == (200, "degraded")
    with Peer(gateway.port) as peer:
        peer.publisher("orders")
        assert set(peer.outcomes(len(peer.publish(MESSAGE))).values()) == {"accepted"}


@pytest.mark.parametrize("part", ["reading", "sending"])
def test_one_node_that_cannot_be_read_stops_no_other(gateway: GatewayProcess, part: str) -> None:
    watch = Watch.of(gateway)
    with Peer(gateway.port) as waiting, Peer(gateway.port) as publisher, Peer(gateway.port) as other:
        waiting.consumer(BROKEN, credit=10)
        other.consumer("orders", credit=10)
        watch.until(lambda: is_well(watch))
        plant(gateway, part)
        for handle, node in enumerate((BROKEN, "orders")):
            publisher.publisher(node, handle=handle)
            assert set(publisher.outcomes(len(publisher.publish(MESSAGE, handle=handle))).values()) == {"accepted"}
        assert len(other.receive(1)) == 1
        watch.until(lambda: is_shown(watch, "alarm", "mistakes"))
        plant(gateway, None)
    with Peer(gateway.port) as again:
        again.consumer(BROKEN, credit=10)
        assert len(again.receive(1)) == 1, "nothing is lost"
