"""A gateway whose time of day is hours ahead of Kafka's, which takes no record that is dated so."""

from __future__ import annotations

import uuid
from pathlib import Path

from tests.gateway.admin.shown_problems import ADMIN, is_shown, is_well, problem
from tests.kit.processes.admin_pages import Watch
from tests.kit.processes.gateway import kafka_realm, make_gateway
from tests.kit.processes.jumping_clock import JumpingClock
from tests.kit.wire.peer import Peer
from tests.kit.wire.reloading import MESSAGE

BEYOND_S = 2 * 3600.0  # message.timestamp.after.max.ms is an hour


def test_a_clock_hours_ahead_is_named_and_all_goes_on_when_it_is_right(tmp_path: Path, kafka_bootstrap: str) -> None:
    clock = JumpingClock(tmp_path)
    gateway = make_gateway(tmp_path, kafka_realm(kafka_bootstrap, f"t{uuid.uuid4().hex[:8]}"), admin=ADMIN)
    gateway.environment.update(clock.environment)
    gateway.start()
    watch = Watch.of(gateway)
    with Peer(gateway.port) as peer:
        peer.publisher("orders")
        assert set(peer.outcomes(len(peer.publish(MESSAGE))).values()) == {"accepted"}
        watch.until(lambda: is_well(watch))
        clock.jump(BEYOND_S)
        assert set(peer.outcomes(len(peer.publish(MESSAGE))).values()) == {"rejected:amqp:internal-error"}
        assert peer.detached() == "amqp:internal-error"
        watch.until(lambda: is_shown(watch, "evidence-refused"))
        shown = problem(watch, "evidence-refused")
        assert shown is not None and "INVALID_TIMESTAMP" in shown["detail"], shown
        assert "INVALID_TIMESTAMP" in gateway.log_path.read_text()
        clock.jump(0.0)
        peer.publisher("orders", handle=1)
        assert set(peer.outcomes(len(peer.publish(MESSAGE, handle=1))).values()) == {"accepted"}
        watch.until(lambda: not is_shown(watch, "evidence-refused"))
    gateway.stop()
