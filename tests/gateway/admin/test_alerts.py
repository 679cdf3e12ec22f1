"""The alerts that are shipped: each is evaluated against a real gateway that is well, and against one that is not.

By our evaluator (`promql`) in the gate: what was scraped while all was well stands for the past half hour, and what is
scraped now for now. In the long tier by a real Prometheus, which waits a second where an alert waits for minutes.
"""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from native_backend.log.open import open_embedded
from native_backend.log.port import TopicSpec
from tests.gateway.admin.past import GROUPS, RULES, EvaluatedPast, NewPast, Past, ScrapedPast, until, until_fires
from tests.gateway.admin.promql import parse
from tests.gateway.admin.shown_problems import is_shown, is_well, problem
from tests.kit.processes.admin_pages import Watch
from tests.kit.processes.broker import start_broker
from tests.kit.processes.certificates import Authority
from tests.kit.processes.gateway import GatewayProcess, embedded_realm, kafka_realm, make_gateway, start_gateway
from tests.kit.processes.prometheus import Prometheus, start_prometheus
from tests.kit.processes.small_disk import small_disk
from tests.kit.wire import frames
from tests.kit.wire.consumer_errors import given_back, with_letters
from tests.kit.wire.peer import Peer
from tests.kit.wire.reloading import BAD, MESSAGE, Folder

PAGE = Path(__file__).parents[3] / "docs/how-to/watch-a-gateway.md"
ADMIN = {"listen": "http://127.0.0.1:0"}


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    started = start_prometheus(tmp_path_factory.mktemp("prometheus") / "one")
    yield started
    started.stop()


@pytest.fixture(params=["promql", "prometheus"])
def new_past(request: pytest.FixtureRequest) -> Iterator[NewPast]:
    pasts: list[Past] = []

    def make(watch: Watch) -> Past:
        if request.param == "promql":
            pasts.append(EvaluatedPast(watch))
        else:
            pasts.append(ScrapedPast(request.getfixturevalue("prometheus"), watch))
        return pasts[-1]

    yield make
    for past in pasts:
        past.end()


@contextmanager
def serving(
    directory: Path, new_past: NewPast, more: Sequence[str] = (), **settings: Any
) -> Iterator[tuple[GatewayProcess, Past]]:
    gateway = make_gateway(directory, embedded_realm(directory), admin=ADMIN, **settings)
    gateway.more += more
    gateway.start()
    try:
        watch = Watch.of(gateway)
        watch.until(lambda: is_well(watch))
        past = new_past(watch)
        assert past.quiet(), "all is well"
        yield gateway, past
    finally:
        gateway.stop()


@contextmanager
def nothing_is_stored(directory: Path) -> Iterator[None]:
    """Another process writes to the realm's file all the time."""
    other = sqlite3.connect(directory / "realm" / "realm.sqlite", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        other.execute("ROLLBACK")
        other.close()


def test_a_full_disk_fires_and_is_over_when_there_is_room(tmp_path: Path, new_past: NewPast) -> None:
    with small_disk(tmp_path / "disk") as disk:
        gateway = make_gateway(tmp_path, embedded_realm(tmp_path / "disk"), admin=ADMIN)
        gateway.environment = disk.environment
        gateway.start()
        try:
            watch = Watch.of(gateway)
            with Peer(gateway.port) as peer:
                peer.publisher("orders")
                peer.outcomes(len(peer.publish(MESSAGE)))
                watch.until(lambda: is_well(watch))
                past = new_past(watch)
                assert past.quiet()
                disk.fill()
                peer.outcomes(len(peer.publish(*[MESSAGE] * 50)))
                disk.clear()
                until_fires(past, "RealmgatePeersAreToldErrors", **{"class": "transient"})
                disk.fill()
                peer.outcomes(len(peer.publish(*[MESSAGE] * 50)))
                until_fires(past, "RealmgateProblem", kind="cannot-write")
                until_fires(past, "RealmgateNotReady")
                disk.clear()
                until(past, lambda: not past.fires("RealmgateProblem") and not past.fires("RealmgateNotReady"))
                assert new_past(watch).quiet(), "half an hour later"
        finally:
            gateway.stop()


def test_kafka_stopped_fires_and_is_over_when_it_goes_on(tmp_path: Path, new_past: NewPast) -> None:
    broker = start_broker(tmp_path / "kafka")
    try:
        gateway = start_gateway(tmp_path, kafka_realm(broker.bootstrap, "um"), admin=ADMIN)
        try:
            watch = Watch.of(gateway)
            with Peer(gateway.port) as peer:
                peer.publisher("orders")
                peer.outcomes(len(peer.publish(MESSAGE)))
                watch.until(lambda: is_well(watch))
                past = new_past(watch)
                assert past.quiet()
                os.kill(broker.pid, signal.SIGSTOP)
                try:
                    peer.publish(*[MESSAGE] * 20)
                    until_fires(past, "RealmgateNotReady")
                    until_fires(past, "RealmgateProblem", kind="lease-lapsed")
                    watch.until(lambda: is_shown(watch, "log-unreachable"))
                    shown = watch.health()
                    assert (shown["status"], shown["state"]) == (503, "lease-lapsed")
                    for kind in ("lease-lapsed", "log-unreachable"):
                        sentence = problem(watch, kind)
                        assert sentence is not None
                        assert sentence["remedy"].startswith(
                            f"make sure that the realm on Kafka at {broker.bootstrap} answers"
                        )
                    assert any("lease-lapsed: the log has not answered for" in words for words in shown["warnings"])
                    with Peer(gateway.port) as late:  # nothing was sent for it
                        late.send(frames.attach_receiver("orders"))
                        late.expect("attach", 60)
                        description = late.expect("detach", 60).field(2).value[1]
                    assert "again" in description and "stored" not in description, description
                finally:
                    os.kill(broker.pid, signal.SIGCONT)
                peer.outcomes(20, deadline_s=90)
                watch.until(lambda: is_well(watch))
                until(past, lambda: not past.fires("RealmgateProblem") and not past.fires("RealmgateNotReady"))
        finally:
            gateway.stop()
    finally:
        broker.kill()


def test_errors_of_a_kafka_that_was_away_fire(tmp_path: Path, new_past: NewPast) -> None:
    broker = start_broker(tmp_path / "kafka")
    try:
        limits = {"publish_deadline_ms": 1_500}
        gateway = start_gateway(tmp_path, kafka_realm(broker.bootstrap, "um"), admin=ADMIN, limits=limits)
        try:
            watch = Watch.of(gateway)
            with Peer(gateway.port) as peer:
                peer.publisher("orders")
                peer.outcomes(len(peer.publish(MESSAGE)))
                watch.until(lambda: is_well(watch))
                past = new_past(watch)
                broker.kill()
                outcomes = peer.outcomes(len(peer.publish(*[MESSAGE] * 20)), deadline_s=60)
                assert set(outcomes.values()) == {"released"}
                until_fires(past, "RealmgatePeersAreToldErrors", **{"class": "transient"})
                nodes = {dict(labels)["node"] for name, labels in watch.scrape() if name == "realmgate_errors_total"}
                assert nodes == {"orders"}
                watch.until(lambda: is_shown(watch, "evidence-waits"))
                broker.restart()
                watch.until(lambda: is_well(watch))
        finally:
            gateway.stop()
    finally:
        broker.kill()


def test_a_gateway_that_is_gone(tmp_path: Path, new_past: NewPast) -> None:
    with serving(tmp_path, new_past) as (gateway, past):
        gateway.kill()
        until_fires(past, "RealmgateNotReady", job=past.job)
        until_fires(past, "RealmgateGatewayGone", job=past.job)


def test_tables_that_are_refused(tmp_path: Path, new_past: NewPast) -> None:
    folder = Folder(tmp_path / "ours")
    with serving(tmp_path, new_past, mappings={"dir": str(folder.directory)}) as (_, past):
        folder.write(BAD)
        until_fires(past, "RealmgateTablesRefused")
        until_fires(past, "RealmgateProblem", kind="tables-refused")


def test_a_certificate_that_ends_until_it_is_renewed(tmp_path: Path, new_past: NewPast) -> None:
    authority = Authority(tmp_path / "authority")
    pair = authority.sign("server", "/CN=localhost", days="400")
    tls = {"certificate": str(pair.certificate), "key": str(pair.key)}
    with serving(tmp_path, new_past, ["amqps"], tls=tls) as (_, past):
        authority.sign("server", "/CN=localhost", days="13")
        until_fires(past, "RealmgateCertificateEnds", file="certificate")
        authority.sign("server", "/CN=localhost", days="15")
        until(past, past.quiet)


def test_dead_letters(tmp_path: Path, new_past: NewPast) -> None:
    with serving(tmp_path, new_past) as (gateway, past):
        with_letters(gateway, "orders")
        given_back(gateway, "orders", frames.state("rejected"))
        until(past, lambda: (LETTERS, REJECTED) in past.watch.scrape())
        past.anew()
        given_back(gateway, "orders", *[frames.state("rejected")] * 4)
        past.watch.until(lambda: past.watch.scrape()[LETTERS, REJECTED] == 5)
        assert past.quiet(), "a few are no news"
        given_back(gateway, "orders", *[frames.state("rejected")] * 10)
        until_fires(past, "RealmgateDeadLetters", node="orders", cause="rejected")


LETTERS = "realmgate_dead_letters_total"
REJECTED = frozenset({"node": "orders", "cause": "rejected", "job": "realmgate"}.items())


def test_evidence_that_is_lost(tmp_path: Path, new_past: NewPast) -> None:
    """The topic of the outcome records is gone."""
    with serving(tmp_path, new_past) as (gateway, past):
        log = open_embedded(tmp_path / "realm")
        log.control.delete_topics(["um.outcomes"])
        with Peer(gateway.port) as peer:
            peer.stored("orders", MESSAGE)
        until_fires(past, "RealmgateEvidenceLost")
        until_fires(past, "RealmgateProblem", kind="alarm", about="evidence not stored")
        until_fires(past, "RealmgateProblem", kind="evidence-refused")
        assert past.watch.health()["state"] == "degraded", "messages are accepted"
        log.control.create_topics([TopicSpec("um.outcomes")])
        log.close()
        with Peer(gateway.port) as peer:
            peer.stored("orders", MESSAGE)
        until(past, lambda: {labels["kind"] for labels in past.fires("RealmgateProblem")} == {"alarm"})


def test_settlements_that_take_long(tmp_path: Path, new_past: NewPast) -> None:
    with serving(tmp_path, new_past) as (gateway, past), Peer(gateway.port) as peer:
        peer.stored("orders", *[MESSAGE] * 3)
        peer.consumer("orders", credit=3)
        seen = [frame.field(1) for frame in peer.receive(3)]
        with nothing_is_stored(tmp_path):
            peer.settle(seen, frames.state("accepted"))
            time.sleep(1.5)  # of the world, not of the test: what is stored after it took longer than a second
        until_fires(past, "RealmgateRealmSlow")


def test_publishers_that_are_held_back(tmp_path: Path, new_past: NewPast) -> None:
    with (
        serving(tmp_path, new_past, limits={"in_flight_bytes": 1 << 20}) as (gateway, past),
        Peer(gateway.port) as peer,
    ):
        peer.publisher("orders")
        with nothing_is_stored(tmp_path):
            peer.publish(*[frames.message(bytes(50_000))] * 30)
            until_fires(past, "RealmgatePublishersHeldBack")
        until(past, lambda: not past.fires("RealmgatePublishersHeldBack"))


def test_an_event_that_holds_the_mark(tmp_path: Path, new_past: NewPast) -> None:
    with serving(tmp_path, new_past) as (gateway, past), Peer(gateway.port) as peer:
        peer.stored("orders", *[MESSAGE] * 3)
        peer.consumer("orders", credit=3)
        seen = [frame.field(1) for frame in peer.receive(3)]
        until(past, lambda: ("realmgate_durable_low_eid", ORDERS) in past.watch.scrape())
        past.anew()
        assert not past.fires("RealmgateEventHoldsTheMark")
        peer.settle(seen[1:], frames.state("accepted"))
        until_fires(past, "RealmgateEventHoldsTheMark", node="orders")
        peer.settle(seen[:1], frames.state("accepted"))
        until(past, lambda: not past.fires("RealmgateEventHoldsTheMark"))


ORDERS = frozenset({"node": "orders", "durable": "queue", "partition": "0", "job": "realmgate"}.items())


def test_consumers_that_lag(tmp_path: Path, new_past: NewPast) -> None:
    with serving(tmp_path, new_past) as (gateway, past), Peer(gateway.port) as peer:
        peer.publisher("orders")
        peer.consumer("orders")
        for _ in range(51):
            peer.outcomes(len(peer.publish(*[MESSAGE] * 2_000)))
        until_fires(past, "RealmgateConsumersLag", node="orders")


def test_every_alert_is_documented_and_has_a_test_that_fires_it() -> None:
    alerts = set(re.findall(r"^\| `(Realmgate\w+)` ", PAGE.read_text(), re.MULTILINE))
    assert alerts == {alert for rules in GROUPS.values() for alert in rules}
    fired = set(re.findall(r'until_fires\(past, "(\w+)"', Path(__file__).read_text()))
    assert fired == set(RULES)


@pytest.mark.parametrize("alert", RULES)
def test_an_alert_speaks_of_series_that_there_are(alert: str) -> None:
    series = set(re.findall(r"`(realmgate_\w+)`", PAGE.read_text()))
    assert {name.removesuffix("_bucket") for name in parse(RULES[alert]["expr"]).names()} <= series | {"up"}
