"""What operators did to queues and durables, by the real commands: purged, moved, sought. The books close, and none of
it is an anomaly; what is done to the topics behind their back still is one."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.cli import main as cli
from native_backend.log.open import open_embedded
from reconciliation.model.settings import Realm
from tests.reconciliation.conftest import Reconcile, Result
from tests.reconciliation.world import Sent, World


def _before(world: World) -> tuple[list[Sent], list[Sent]]:
    orders, news = world.queue("orders"), world.channel("news")
    world.queue("dead")
    world.queue("old")
    for name in ("d", "e"):
        world.durable(news, name, 0)
        world.snapshot(news, name, 0, [], 0)
    world.snapshot(orders, "queue", 0, [], 0)
    run = world.run()
    sent = run.publish(orders, 12)
    run.settle(orders, sent[1:3], "accepted")
    events = run.publish(news, 10)
    run.settle(news, events[:8], "accepted", "d")
    run.close()
    return sent, events


def _after(world: World, events: list[Sent]) -> None:
    orders, news = world.queue("orders"), world.channel("news")
    world.runs = 1
    run = world.run()
    run.settle(orders, run.publish(orders, 3)[:1], "accepted")
    run.settle(news, events[3:6], "accepted", "d")
    run.close()


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory, reconcile: Reconcile) -> Result:
    directory: Path = tmp_path_factory.mktemp("commanded")
    config = directory / "gateway.yaml"
    config.write_text(f"realm: {{kind: embedded, path: {directory / 'realm'}}}\n")
    log = open_embedded(directory / "realm")
    _, events = _before(World(log, "um"))
    log.close()
    for words in (
        ("queue", "move", "orders", "--to", "dead", "--count", "4"),
        ("queue", "purge", "orders"),
        ("durable", "seek", "news", "d", "--to", str(events[3].eid)),
        ("durable", "seek", "news", "e", "--to", str(events[5].eid)),
        ("node", "delete", "old"),
    ):
        assert cli.run([*words, "--yes", "--config", str(config)]) == 0
    log = open_embedded(directory / "realm")
    _after(World(log, "um"), events)
    log.close()
    return reconcile(Realm("embedded", "um", path=directory / "realm"))


def test_the_books_close(result: Result) -> None:
    balance = result.manifest["balance"]
    queues = {(durable["node"], durable["durable"]): durable for durable in balance["durables"]}
    orders, dead = queues["orders", "queue"], queues["dead", "queue"]
    assert (orders["entitled"], orders["acknowledged"], orders["moved"], orders["purged"]) == (15, 3, 4, 6)
    assert orders["available"] == 2
    assert (dead["entitled"], dead["available"]) == (4, 4)
    assert next(node for node in balance["nodes"] if node["node"] == "dead")["copied"] == 4
    back, forth = queues["news", "d"], queues["news", "e"]
    assert (back["entitled"], back["acknowledged"], back["available"], back["purged"]) == (10, 6, 4, 0)
    assert (forth["entitled"], forth["acknowledged"], forth["available"], forth["purged"]) == (10, 0, 5, 5)
    assert balance["difference"] == 0


def test_nothing_of_it_is_an_anomaly(result: Result) -> None:
    assert result.classes() == {}
    assert result.code == 0
