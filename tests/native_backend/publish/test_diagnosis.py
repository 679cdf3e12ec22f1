"""What keeps a realm from its work begins and ends as it does; where nothing else is written, that is tried."""

from __future__ import annotations

import pytest

from native_backend.log.simulated.driver import SimulatedLog
from native_backend.log.simulated.faults import Faults
from native_backend.publish.evidence import ALARM
from native_backend.state.troubles import Alarms, Troubles
from tests.kit.realm.realm_process import RealmProcess
from tests.kit.realm.virtual_clock import VirtualClock
from tests.kit.realm.worlds import SimulatedWorld


@pytest.fixture
def realm() -> RealmProcess:
    return RealmProcess(SimulatedWorld("simulated", seed=7), "u").open()


def kinds(realm: RealmProcess) -> set[str]:
    return {trouble.kind for trouble in realm.realm.metrics.troubles}


def faulty(realm: RealmProcess, faults: Faults) -> None:
    assert isinstance(realm.log, SimulatedLog)
    realm.log.faults = faults


def settled(realm: RealmProcess, faults: Faults) -> None:
    """An acknowledgement that the journal cannot store."""
    node = realm.create("orders")
    eids = realm.publish(node, [b"body"])
    consumer = realm.consumer(node)
    consumer.receive(1)
    faulty(realm, faults)
    assert consumer.settle("acknowledge", eids) != "done"


def test_a_log_that_refuses_is_a_trouble_until_it_takes_records_again(realm: RealmProcess) -> None:
    """Nothing waits for it: the lease is written to learn it."""
    settled(realm, Faults(refuse=1.0, refusals=("refused",)))
    realm.until(lambda: "cannot-write" in kinds(realm), "the trouble")
    faulty(realm, Faults())
    realm.until(lambda: "cannot-write" not in kinds(realm), "its end")


def test_it_stays_while_the_log_refuses_the_probe_too(realm: RealmProcess) -> None:
    settled(realm, Faults(refuse=1.0, refusals=("refused",)))
    faulty(realm, Faults(refuse=1.0, refusals=("refused",), control=1.0))
    realm.until(lambda: {"cannot-write", "log-unreachable", "lease-lapsed"} <= kinds(realm), "all of it")
    for _ in range(2_000):
        realm.turn()
    assert {"cannot-write", "log-unreachable", "lease-lapsed"} <= kinds(realm)
    faulty(realm, Faults())
    realm.until(lambda: not kinds(realm), "its end")


def test_evidence_that_is_refused_by_itself_is_a_trouble_until_some_is_stored(realm: RealmProcess) -> None:
    faulty(realm, Faults(refuse=1.0, refusals=("refused",)))
    realm.realm.append_evidence("outcomes", b"run", b"1")
    realm.until(lambda: kinds(realm) == {"evidence-refused"}, "the trouble")
    assert realm.realm.metrics.alarms[ALARM] == 1
    faulty(realm, Faults())
    realm.realm.append_evidence("outcomes", b"run", b"2")
    realm.until(lambda: not kinds(realm), "its end")


def test_a_disk_that_is_full_is_the_whole_logs(realm: RealmProcess) -> None:
    faulty(realm, Faults(refuse=1.0, refusals=("unavailable",)))
    realm.realm.append_evidence("outcomes", b"run", b"1")
    realm.until(lambda: kinds(realm) == {"cannot-write", "evidence-waits"}, "both")
    faulty(realm, Faults())
    realm.until(lambda: not kinds(realm), "its end")


def test_what_concerns_one_node_is_none_of_it(realm: RealmProcess) -> None:
    node = realm.create("orders")
    faulty(realm, Faults(refuse=1.0, refusals=("too-large", "refused")))
    realm.realm.publish(node, [b"k"], [b"v"], object())
    for _ in range(200):
        realm.turn()
    assert kinds(realm) == set()


def test_a_trouble_begins_with_its_first_report_and_an_alarm_grows() -> None:
    clock = VirtualClock()
    troubles, alarms = Troubles(clock), Alarms(clock)
    troubles.begin("topic-missing", "one word", "orders")
    began = clock.epoch_us()
    clock.advance(5)
    troubles.begin("topic-missing", "another word", "orders")
    troubles.begin("topic-missing", "one word", "prices")
    assert [(trouble.about, trouble.detail, trouble.since_us) for trouble in troubles.present()] == [
        ("orders", "another word", began),
        ("prices", "one word", began + 5_000),
    ]
    troubles.end("topic-missing", "orders")
    troubles.end("topic-missing", "orders")
    assert [trouble.about for trouble in troubles.present()] == ["prices"]
    alarms["lost"] += 3
    raised = clock.epoch_us()
    clock.advance(5)
    alarms["lost"] += 0
    assert (dict(alarms), alarms.raised_us) == ({"lost": 3}, {"lost": raised})
