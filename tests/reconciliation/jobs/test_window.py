"""Findings that stand for many deliveries or acts: a window has those of its time, whenever the first of all was."""

from __future__ import annotations

from pathlib import Path

import pytest

from native_backend.log.open import open_embedded
from native_backend.nodes.node import Node
from reconciliation.model.settings import Realm
from reconciliation.model.window import Window
from tests.reconciliation.conftest import Reconcile
from tests.reconciliation.world import START_US, GatewayRun, World

HOUR_US = 3_600_000_000
BETWEEN_US = START_US + HOUR_US // 2


def out_of_order(run: GatewayRun, node: Node) -> None:
    """Two messages of one link, each stored where the other one should be."""
    first, second = run.number(2)
    later, sooner = run.store(node, [second, first])
    run.tell_publish(node, [first, second], [sooner, later], "stored")
    run.turn()


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Realm:
    """All of it is wrong twice, an hour between."""
    path: Path = tmp_path_factory.mktemp("window") / "realm"
    log = open_embedded(path)
    world = World(log, "um")
    nodes = [world.queue(name) for name in ("orders", "full", "ended", "purged")]
    orders, full, ended, purged = nodes
    run = world.run()
    run.attest()
    of_each = [run.publish(node, 4) for node in (full, ended, purged)]
    run.turn()
    for at in range(2):
        out_of_order(run, orders)
        evicted, acknowledged, gone = (sent[at].eid for sent in of_each)
        run.note(full, "", "evicted", evicted, evicted, "capacity")
        run.journal(ended, "queue", "acknowledge", [acknowledged], [0], False, "disposition")
        run.note(purged, "queue", "purge", gone, gone, "command none")
        world.clock.now_us += HOUR_US
    run.close()
    log.close()
    return Realm("embedded", "um", path=path)


@pytest.mark.parametrize(
    ("window", "times"),
    [
        (Window(since=BETWEEN_US), 1),
        (Window(until=BETWEEN_US), 1),
        (Window(), 2),
        (Window(since=START_US + 3 * HOUR_US), 0),
    ],
    ids=["the-second", "the-first", "both", "neither"],
)
def test_a_window_has_what_is_of_its_time(realm: Realm, reconcile: Reconcile, window: Window, times: int) -> None:
    result = reconcile(realm, window)
    expected = {"P6": times, "A2": times, "S2": 2 * times} if times else {}
    assert (result.classes(), result.code) == (expected, 1 if times else 0)
