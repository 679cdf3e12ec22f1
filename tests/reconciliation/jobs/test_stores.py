"""What concerns two stores is named where it is: a duplicate in another node, an end in another node's journal."""

from __future__ import annotations

import pytest

from tests.reconciliation import planting
from tests.reconciliation.conftest import Reconcile, Result
from tests.reconciliation.realms import made


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory, reconcile: Reconcile, request: pytest.FixtureRequest) -> Result:
    directory = tmp_path_factory.mktemp("stores") / "realm"
    place = made("embedded", request, directory)
    with place.world() as world:
        home, abroad, third, ended = (world.queue(name) for name in ("home", "abroad", "third", "ended"))
        run = world.run()
        sent = run.publish(home, 3)
        doubled, moved, _ = (b"1;basic;%s;%d;1;4;;0;;0" % (run.name.encode(), event.seq) for event in sent)
        run.publish(abroad, 1)
        world.append(abroad.topic, [doubled, doubled], [b"x", b"x"])
        world.append(third.topic, [doubled, moved], [b"x", b"x"])
        theirs = run.publish(ended, 2)
        [seq] = run.settle(home, sent[:1], "accepted", journal=False)
        run.journal(ended, "queue", "acknowledge", [theirs[0].eid], [seq], False, "disposition")
        run.close()
    planting.delete(directory, home.topic, sent[1].eid)
    return reconcile(place.realm)


def test_nothing_else_is_found(result: Result) -> None:
    assert result.classes() == {"P1": 1, "P2": 3, "P3": 1, "A1": 1, "A2": 1}


def test_a_duplicate_is_named_in_the_store_that_has_it_too(result: Result) -> None:
    duplicates = {row["node"]: row for row in result.examples("P2")}
    assert {node: row["count"] for node, row in duplicates.items()} == {"abroad": 2, "third": 1}
    for row in duplicates.values():
        assert row["tag"] in row["detail"].removeprefix("stored under the tags ").split(", ")
    stores = {duplicate["node"]: duplicate["store"] for duplicate in duplicates.values()}
    assert len(set(stores.values())) == 2
    assert all(row["tag"].startswith(f"{stores[node]}:") for node, row in duplicates.items())


def test_what_was_moved_is_lost_where_it_was_and_foreign_where_it_is(result: Result) -> None:
    assert [row["node"] for row in result.examples("P1")] == ["home"]
    [foreign] = result.examples("P3")
    assert foreign["node"] == "third"
    assert "its publisher was told EID" in foreign["detail"]


def test_an_end_in_the_journal_names_its_own_node(result: Result) -> None:
    """The outcome says that an event of `home` was acknowledged, the journal has one of `ended` under that seq."""
    [untold], [unended] = result.examples("A2"), result.examples("A1")
    assert (untold["node"], untold["durable"]) == ("ended", "queue")
    assert unended["node"] == "home"
    assert untold["store"] != unended["store"]


def test_the_books_close_over_them(result: Result) -> None:
    nodes = {row["node"]: row for row in result.manifest["balance"]["nodes"]}
    assert {name: row["anomalies"] for name, row in nodes.items()} == {"home": -1, "abroad": 2, "third": 2, "ended": 0}
    assert {name: row["stored"] for name, row in nodes.items()} == {"home": 2, "abroad": 3, "third": 2, "ended": 2}
    assert result.manifest["balance"]["difference"] == 0
