"""Evidence that the log cannot take now: kept in order, bounded, and tried again."""

from __future__ import annotations

import pytest

from native_backend.limits import RealmLimits
from native_backend.logs.simulated.driver import SimulatedLog
from native_backend.logs.simulated.faults import Faults
from tests.native_backend.gateway import Gateway
from tests.native_backend.logs.worlds import SimulatedWorld

FULL = Faults(refuse=1.0, refusals=("unavailable",))


@pytest.fixture
def simulated() -> SimulatedWorld:
    return SimulatedWorld("simulated", seed=7)


def opened(simulated: SimulatedWorld, limits: RealmLimits) -> tuple[Gateway, SimulatedLog]:
    gateway = Gateway(simulated, "u", limits=limits).open()
    assert isinstance(gateway.log, SimulatedLog)
    return gateway, gateway.log


def append(gateway: Gateway, *numbers: int) -> None:
    for number in numbers:
        gateway.realm.append_evidence("outcomes", b"run", b"%d" % number)


def stored(log: SimulatedLog) -> list[bytes | None]:
    return log.read_range("u.outcomes", 0, 0, 1000).values


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
