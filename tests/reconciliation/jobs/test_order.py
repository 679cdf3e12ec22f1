"""A store that became shorter and grew again: what is stored under EIDs that the journal ended before is named (A13),
and what was there before is lost (P1). Times are not compared, so clocks that differ raise no alarm."""

from __future__ import annotations

from pathlib import Path

import pytest

from native_backend.nodes.node import Node
from tests.reconciliation.conftest import Reconcile
from tests.reconciliation.planting import Record
from tests.reconciliation.realms import Place, made
from tests.reconciliation.world import GatewayRun, Sent, World

DAY_US = 86_400_000_000


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return made("embedded", request, tmp_path / "realm")


def cut(place: Place, node: Node, end: int) -> None:
    def is_below(record: Record) -> bool:
        return record[0] < end

    place.keep(node.topic, is_below)


def consumed(world: World, run: GatewayRun, node: Node, count: int) -> list[Sent]:
    """Published one by one, then acknowledged."""
    sent = [event for _ in range(count) for event in run.publish(node, 1)]
    run.settle(node, sent, "accepted")
    run.turn()
    return sent


def test_what_a_later_run_stored_under_acknowledged_eids(place: Place, reconcile: Reconcile) -> None:
    """As after an unclean election, found at the next start of a gateway that does not look."""
    with place.world() as world:
        orders, run = world.queue("orders"), world.run()
        first = consumed(world, run, orders, 6)
        run.close()
    cut(place, orders, first[2].eid)
    with place.world() as world:
        world.runs = 1
        orders, run = world.queue("orders"), world.run()
        again = [event for _ in range(6) for event in run.publish(orders, 1)]
        run.settle(orders, again[4:5], "accepted")
        run.close()
    assert [event.eid for event in again[:4]] == [event.eid for event in first[2:]]
    result = reconcile(place.realm)
    assert result.classes() == {"P1": 4, "A13": 4}
    assert (result.manifest["verdict"], result.code) == ("not clean", 1)
    tags = [f"{orders.store}:{event.eid}" for event in again[:4]]
    rows = result.examples("A13", "orders")
    assert [(row["tag"], row["seq"], row["durable"]) for row in rows] == [
        (tag, event.seq, "queue") for tag, event in zip(tags, again, strict=False)
    ]
    assert all("before the run that stored it had begun" in row["detail"] for row in rows)
    [queue] = result.manifest["balance"]["durables"]
    assert (queue["entitled"], queue["acknowledged"], queue["early"], queue["available"]) == (8, 3, 4, 1)
    assert result.manifest["balance"]["difference"] == 0


def test_what_the_same_run_stored_under_acknowledged_eids(place: Place, reconcile: Reconcile) -> None:
    """The log lost its end while the gateway went on: seqs tell. The earlier events are lost, though their EIDs have
    others now."""
    with place.world() as world:
        orders, run = world.queue("orders"), world.run()
        first = consumed(world, run, orders, 6)
    cut(place, orders, first[2].eid)
    with place.world() as world:
        run.world = world
        again = [event for _ in range(5) for event in run.publish(orders, 1)]
        run.settle(orders, again[4:], "accepted")
        run.close()
    result = reconcile(place.realm)
    assert result.classes() == {"P1": 4, "A13": 4}
    assert [row["seq"] for row in result.examples("A13")] == [event.seq for event in again[:4]]
    assert all("of the same run, given before its own" in row["detail"] for row in result.examples("A13"))
    assert [row["tag"] for row in result.examples("P1")] == [f"{orders.store}:{event.eid}" for event in first[2:]]
    assert result.manifest["balance"]["difference"] == 0


def test_a_truncation_that_the_realm_noticed_is_no_anomaly_of_the_journal(place: Place, reconcile: Reconcile) -> None:
    """It noted the cut: what the journal said before of what lay above does not count. What was lost is lost."""
    with place.world() as world:
        orders, run = world.queue("orders"), world.run()
        first = consumed(world, run, orders, 6)
        world.project(orders, None, first[-1].eid + 1)
        world.snapshot(orders, "queue", first[3].eid, [[first[4].eid, first[5].eid]], 0)
        run.close()
    cut(place, orders, first[2].eid)
    with place.world() as world:
        world.runs = 1
        orders, run = world.queue("orders"), world.run()
        run.truncated(orders, "queue", first[2].eid, first[-1].eid)
        again = [event for _ in range(4) for event in run.publish(orders, 1)]
        run.settle(orders, again[:1], "accepted")
        run.close()
    result = reconcile(place.realm)
    assert result.classes() == {"P1": 4}
    [queue] = result.manifest["balance"]["durables"]
    assert (queue["entitled"], queue["acknowledged"], queue["early"], queue["available"]) == (6, 3, 0, 3)
    assert result.manifest["balance"]["difference"] == 0


def test_clocks_that_differ_are_no_alarm(place: Place, reconcile: Reconcile) -> None:
    """Gateways on machines with other clocks: acknowledgements have earlier times than their events, and later runs
    earlier names than the runs before them. The events' own times are those of this machine."""
    with place.world() as world:
        orders = world.queue("orders")
        left: list[Sent] = []
        for days in (0, 2, -2, 400):
            world.clock.now_us += days * DAY_US
            run = world.run()
            if left:
                run.settle(orders, left, "accepted")
            sent = run.publish(orders, 6)
            run.settle(orders, sent[:3], "accepted")
            run.close()
            left = sent[3:]
            world.clock.now_us -= days * DAY_US
    result = reconcile(place.realm)
    assert result.text.startswith("Verdict: CLEAN."), result.text
    assert result.classes() == {}
