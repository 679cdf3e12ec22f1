"""The journal notes how many outcome records are stored, seldom, and at an orderly end all of them."""

from __future__ import annotations

import pytest

from native_backend.limits import RealmLimits
from native_backend.log.simulated.faults import Faults
from tests.kit.realm.realm_process import RealmProcess
from tests.kit.realm.worlds import SimulatedWorld
from tests.native_backend.publish.refused_evidence import FULL, append, opened

LIMITS = RealmLimits(attestation_interval_s=10.0)


@pytest.fixture
def simulated() -> SimulatedWorld:
    return SimulatedWorld("simulated", seed=7)


def notes(realm: RealmProcess) -> list[int]:
    return [
        entry["runs"][0][1]
        for record in realm.journal()
        for entry in record["entries"]
        if entry["operation"] == "recorded"
    ]


def test_records_are_noted_together(simulated: SimulatedWorld) -> None:
    realm, _ = opened(simulated, LIMITS)
    assert notes(realm) == []
    append(realm, 1)
    realm.until(lambda: notes(realm) == [1], "the first note")
    began_s = realm.clock.monotonic_s()
    for number in range(2, 7):
        append(realm, number)
        realm.turn()
    realm.until(lambda: notes(realm) == [1, 6], "one note of five records")
    assert realm.clock.monotonic_s() - began_s >= 9.0
    for _ in range(20_000):
        realm.turn()
    assert notes(realm) == [1, 6], "nothing new, nothing noted"


def test_an_orderly_end_notes_the_last_record_at_once(simulated: SimulatedWorld) -> None:
    realm, _ = opened(simulated, LIMITS)
    append(realm, 1)
    realm.until(lambda: notes(realm) == [1], "the first note")
    append(realm, 2, 3)
    realm.close()
    later = RealmProcess(simulated, "u", limits=LIMITS).open()
    assert notes(later) == [1, 3]


def test_only_what_is_stored_is_noted(simulated: SimulatedWorld) -> None:
    realm, log = opened(simulated, RealmLimits(attestation_interval_s=0.0))
    append(realm, 1)
    realm.until(lambda: notes(realm) == [1], "the first note")
    log.faults = FULL
    append(realm, 2, 3)
    for _ in range(200):
        realm.turn()
    log.faults = Faults()
    assert notes(realm) == [1]
    realm.until(lambda: 3 in notes(realm), "the rest")
    assert notes(realm)[-1] == 3


def test_tables_are_not_counted(simulated: SimulatedWorld) -> None:
    realm, _ = opened(simulated, RealmLimits(attestation_interval_s=0.0))
    realm.realm.append_evidence("tables", b"digest", b"{}")
    for _ in range(200):
        realm.turn()
    assert notes(realm) == []
