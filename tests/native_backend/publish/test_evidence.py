"""Evidence that the log cannot take now: kept in order, bounded, and tried again."""

from __future__ import annotations

import pytest

from native_backend.limits import RealmLimits
from native_backend.log.simulated.driver import SimulatedLog
from native_backend.log.simulated.faults import Faults
from tests.kit.realm.worlds import SimulatedWorld
from tests.native_backend.publish.refused_evidence import FULL, append, opened


@pytest.fixture
def simulated() -> SimulatedWorld:
    return SimulatedWorld("simulated", seed=7)


def stored(log: SimulatedLog) -> list[bytes | None]:
    return log.control.read_range("u.outcomes", 0, 0, 1000).values


def test_what_a_full_log_refused_is_stored_in_order_once_there_is_room(simulated: SimulatedWorld) -> None:
    gateway, log = opened(simulated, RealmLimits())
    append(gateway, 0)
    gateway.until(lambda: not gateway.realm.busy, "the first one")
    log.faults = FULL
    append(gateway, *range(1, 8))
    for _ in range(500):
        gateway.turn()
    append(gateway, *range(8, 12))
    assert stored(log) == [b"0"]
    log.faults = Faults()
    append(gateway, 12)  # not before those that wait
    gateway.until(lambda: len(stored(log)) == 13, "the rest")
    assert stored(log) == [b"%d" % number for number in range(13)]
    assert gateway.realm.evidence_failed == 0
    gateway.until(lambda: not gateway.realm.busy, "rest")


def test_what_finds_no_room_to_wait_is_counted(simulated: SimulatedWorld) -> None:
    gateway, log = opened(simulated, RealmLimits(evidence_bytes=3))
    log.faults = FULL
    append(gateway, *range(1, 6))
    gateway.until(lambda: gateway.realm.evidence_failed == 2, "two too many")
    log.faults = Faults()
    gateway.until(lambda: not gateway.realm.busy, "rest")
    assert stored(log) == [b"1", b"2", b"3"]


def test_what_still_waits_at_the_end_is_counted(simulated: SimulatedWorld) -> None:
    gateway, log = opened(simulated, RealmLimits())
    log.faults = FULL
    append(gateway, 1, 2)
    for _ in range(100):
        gateway.turn()
    gateway.realm.close(0.2)
    assert gateway.realm.evidence_failed == 2
