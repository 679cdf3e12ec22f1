"""Events that no one accepted: dead letters (kept and discarded), expired, filtered, evicted, trimmed. None of it is an
anomaly, and the books close; what is wrong with it does not stay hidden."""

from __future__ import annotations

from pathlib import Path

import pytest

from native_backend.events.copy_key import copy_key
from native_backend.log.open import open_embedded
from native_backend.nodes.properties import Properties
from reconciliation.model.settings import Realm
from tests.reconciliation.conftest import Reconcile, Result
from tests.reconciliation.world import World


def fill(world: World) -> None:
    orders, dead, forged = world.queue("orders"), world.queue("dead"), world.queue("forged")
    run = world.run()
    sent = run.publish(orders, 8)
    run.settle(orders, sent[:2], "accepted")
    run.settle(orders, sent[2:5], "rejected", to=dead)
    run.settle(orders, sent[5:6], "rejected")
    world.append(forged.topic, [copy_key(orders.store, sent[0].eid, "rejected", b"key")], [b"unwritten"])
    stale, small, done = world.queue("stale"), world.queue("small", Properties(capacity_events=3)), world.queue("done")
    sent = run.publish(stale, 6, ttl="T1")
    run.settle(stale, sent[:1], "accepted")
    run.journal(stale, "queue", "expired", [event.eid for event in sent[1:3]], [0, 0], False, "ttl")
    run.journal(stale, "queue", "expired", [sent[3].eid], [0], False, "ttl", dead)
    news = world.channel("news")
    heard = run.publish(news, 3)
    world.durable(news, "app:red", heard[0].eid, selector="colour = 'red'")
    run.journal(news, "app:red", "filtered", [heard[1].eid], [0], False, "selector")
    sent = run.publish(small, 9)
    run.settle(small, sent[1:2], "accepted")
    run.sweep(small, "evicted", sent[0].eid, sent[5].eid)
    sent = run.publish(done, 7)
    run.settle(done, sent[:5], "accepted")
    run.sweep(done, "trimmed", sent[0].eid, sent[3].eid)
    run.close()


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory, reconcile: Reconcile) -> Result:
    directory: Path = tmp_path_factory.mktemp("given-up")
    log = open_embedded(directory)
    fill(World(log, "um"))
    log.close()
    return reconcile(Realm("embedded", "um", path=directory))


def test_a_letter_is_in_the_books_of_both_nodes(result: Result) -> None:
    nodes = {node["node"]: node for node in result.manifest["balance"]["nodes"]}
    dead, orders = nodes["dead"], nodes["orders"]
    assert (dead["copied"], dead["stored"], dead["accepted"]) == (4, 4, 0)
    assert (orders["copied"], orders["stored"], orders["accepted"]) == (0, 8, 8)
    queues = {durable["node"]: durable for durable in result.manifest["balance"]["durables"]}
    assert (queues["orders"]["acknowledged"], queues["orders"]["dead_lettered"]) == (2, 4)
    assert (queues["dead"]["entitled"], queues["dead"]["available"]) == (4, 4)


def test_what_the_realm_ended_by_itself_is_in_the_books(result: Result) -> None:
    queues = {durable["node"]: durable for durable in result.manifest["balance"]["durables"]}
    stale, small, done = queues["stale"], queues["small"], queues["done"]
    assert (stale["acknowledged"], stale["expired"], stale["available"]) == (1, 3, 2)
    assert (queues["news"]["filtered"], queues["news"]["available"]) == (1, 2)
    assert (small["entitled"], small["acknowledged"], small["evicted"], small["available"]) == (9, 1, 5, 3)
    assert (done["entitled"], done["acknowledged"], done["available"], done["retained_out"]) == (7, 5, 2, 0)


def test_nothing_of_it_is_an_anomaly_but_a_copy_that_the_journal_does_not_know(result: Result) -> None:
    assert result.classes() == {"A7": 1}
    [finding] = result.examples("A7", "forged")
    assert "and the journal knows of 0" in finding["detail"]
    assert (result.manifest["balance"]["difference"], result.code) == (0, 1)
