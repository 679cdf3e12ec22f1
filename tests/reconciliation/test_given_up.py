"""Events that nobody accepted: dead letters, kept and discarded. None of it is an anomaly, and the books close; what is
wrong with it does not stay hidden."""

from __future__ import annotations

from pathlib import Path

import pytest

from native_backend.letter import copy_key
from native_backend.logs import open_embedded
from reconciliation.settings import Realm
from tests.reconciliation.conftest import Reconcile, Result
from tests.reconciliation.world import World


def fill(world: World) -> None:
    orders, dead, forged = world.queue("orders"), world.queue("dead"), world.queue("forged")
    run = world.run()
    sent = run.publish(orders, 8)
    run.settle(orders, sent[:2], "accepted")
    run.settle(orders, sent[2:5], "rejected", to=dead)
    run.settle(orders, sent[5:6], "rejected")
    world.append(forged.topic, [copy_key(orders.store, sent[0].eid, "rejected", b"key")], [b"nobody wrote of it"])
    run.close()


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory, reconcile: Reconcile) -> Result:
    directory: Path = tmp_path_factory.mktemp("given-up")
    log = open_embedded(directory)
    fill(World(log, "um"))
    log.close()
    return reconcile(Realm("embedded", "um", path=directory))


def test_a_letter_is_in_the_books_of_both_nodes(result: Result) -> None:
    dead, _, orders = result.manifest["balance"]["nodes"]
    assert (dead["copied"], dead["stored"], dead["accepted"]) == (3, 3, 0)
    assert (orders["copied"], orders["stored"], orders["accepted"]) == (0, 8, 8)
    queues = {one["node"]: one for one in result.manifest["balance"]["durables"]}
    assert (queues["orders"]["acknowledged"], queues["orders"]["dead_lettered"]) == (2, 4)
    assert (queues["dead"]["entitled"], queues["dead"]["available"]) == (3, 3)


def test_nothing_of_it_is_an_anomaly(result: Result) -> None:
    assert result.classes() == {}


def test_a_copy_that_the_journal_does_not_know_keeps_the_books_open(result: Result) -> None:
    forged = next(one for one in result.manifest["balance"]["nodes"] if one["node"] == "forged")
    assert (forged["copied"], forged["stored"]) == (0, 1)
    assert (result.manifest["balance"]["difference"], result.code) == (1, 1)
