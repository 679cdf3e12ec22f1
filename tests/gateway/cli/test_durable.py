"""Durables and queues on the command line, with a gateway that owns the realm and without one."""

from __future__ import annotations

import io
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gateway.config.settings import load_settings
from gateway.serve.open_log import open_log
from native_backend.journal.journal import journal_topic, tail
from native_backend.log.open import open_embedded
from native_backend.subscriptions.subscription import SubscriptionLost
from tests.gateway.cli.command_line import Run, config, run
from tests.kit.realm.fixtures import bodies
from tests.kit.realm.realm_process import RealmProcess
from tests.kit.realm.worlds import SqliteWorld

__all__ = ["config", "run"]  # fixtures


@contextmanager
def serving(tmp_path: Path) -> Iterator[RealmProcess]:
    """A gateway of another process on the same realm."""
    world = SqliteWorld(tmp_path / "realm")
    realm = RealmProcess(world, "um").open()
    try:
        yield realm
    finally:
        realm.close()
        world.close()


@contextmanager
def turning(realm: RealmProcess) -> Iterator[None]:
    """It goes on while this thread waits for a command."""
    over = threading.Event()

    def turn() -> None:
        while not over.is_set():
            realm.turn()
            time.sleep(0.001)

    thread = threading.Thread(target=turn)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def test_a_queue_is_peeked_at_moved_and_purged_without_a_gateway(run: Run, tmp_path: Path) -> None:
    with serving(tmp_path) as realm:
        node = realm.create("orders")
        realm.create("dead")
        eids = realm.publish(node, [b"\x00Sw\xa1\x05hello", *bodies(9)])
        consumer = realm.consumer(node)
        consumer.receive(4)
        consumer.acknowledge(eids[1:2])
        assert consumer.settle("return", eids[2:3], failed=True) == "done"
    code, out, err = run("queue", "peek", "orders", "--count", "3")
    assert (code, err) == (0, "")
    rows = [line.split() for line in out.splitlines()]
    assert rows[0] == ["EID", "STORED", "OCTETS", "FAILED", "GIVEN", "BODY"]
    assert [(row[0], *row[2:]) for row in rows[1:]] == [
        (str(eids[0]), "10", "0", "yes", "hello"),
        (str(eids[2]), "8", "1", "yes", "00000001"),
        (str(eids[3]), "8", "0", "yes", "00000002"),
    ]
    peeked = json.loads(run("queue", "peek", "orders", "--from", str(eids[8]), "--json")[1])
    assert [(event["eid"], event["body"]) for event in peeked] == [(eids[8], "00000007"), (eids[9], "00000008")]
    code, out, err = run("queue", "move", "orders", "--to", "dead", "--count", "2", "--yes")
    assert (code, out, err) == (0, "queue orders: 2 events are moved\n", "")
    moved = json.loads(run("queue", "peek", "dead", "--json")[1])
    assert [event["body"] for event in moved] == ["hello", "00000001"]
    assert moved[0]["key"] == f"2;{node.store};{eids[0]};moved;key"
    assert run("queue", "move", "orders", "--to", "nowhere")[0] == 1
    code, out, _ = run("queue", "purge", "orders")
    assert (code, out.startswith("queue orders: "), "are purged" in out) == (0, True, True)
    assert run("queue", "peek", "orders", "--json")[1] == "[]\n"
    code, _, err = run("queue", "purge", "nowhere")
    assert (code, "there is no durable queue of node nowhere" in err) == (1, True)


@pytest.mark.parametrize(
    "words", [("purge", "orders", "--below", "0"), ("move", "orders", "--to", "dead", "--count", "0")]
)
def test_a_purge_or_a_move_of_nothing_is_refused(run: Run, tmp_path: Path, words: tuple[str, ...]) -> None:
    """A script's mark may be 0. It was taken for all."""
    with serving(tmp_path) as realm:
        node = realm.create("orders")
        realm.create("dead")
        realm.publish(node, bodies(3))
    for how in ("--yes", "--dry-run"):
        code, out, err = run("queue", *words, how)
        assert (code, out) == (2, "")
        assert "0 means nothing" in err
    assert len(json.loads(run("queue", "peek", "orders", "--json")[1])) == 3


def test_the_gateway_that_owns_the_realm_does_it_and_answers(run: Run, tmp_path: Path) -> None:
    with serving(tmp_path) as realm:
        node, news = realm.create("orders"), realm.create("news", "channel")
        eids = realm.publish(node, bodies(10))
        consumer, durable = realm.consumer(node), realm.consumer(news, "durable", "c:d")
        consumer.receive(2)
        news_eids = realm.publish(news, bodies(5))
        durable.receive(3)
        durable.acknowledge(news_eids[:3])
        with turning(realm):
            code, out, err = run("queue", "purge", "orders", "--yes")
            assert (code, err) == (0, "")
            assert "2 events that consumers have stay theirs" in out
            code, _, err = run("durable", "seek", "news", "c:d", "--to", "beginning")
            assert (code, "in-use: 1 consumers are attached: stop them first" in err) == (1, True)
            listed = json.loads(run("durable", "list", "--json")[1])
            shown = json.loads(run("durable", "show", "news", "c:d", "--json")[1])
        assert shown in listed
        assert [(row["node"], row["durable"]) for row in listed] == [("news", "c:d"), ("orders", "queue")]
        assert (shown["low"], shown["unsettled"]) == (news_eids[2] + 1, 0)
        assert consumer.drain() == []
        consumer.acknowledge(eids[:2])
        durable.subscription.close()
        with turning(realm):
            assert run("durable", "seek", "news", "c:d", "--to", "1970-01-02T00:00:00Z")[0] == 0
        again = realm.consumer(news, "durable", "c:d")
        assert again.receive(5) == news_eids
        with turning(realm):
            code, out, _ = run("durable", "delete", "news", "c:d", "--yes")
            assert (code, out) == (0, "durable c:d of news: it is deleted\n")
            code, _, err = run("durable", "show", "news", "c:d")
            assert (code, "there is no durable c:d" in err) == (1, True)
        assert again.subscription.take(10, 1000) is None


def test_a_durable_is_sought_by_every_kind_of_place(run: Run, config: Path, tmp_path: Path) -> None:
    with serving(tmp_path) as realm:
        news = realm.create("news", "channel")
        realm.consumer(news, "durable", "c:d")
        eids = realm.publish(news, bodies(3))
        time.sleep(0.01)
        later = realm.publish(news, bodies(3))
    log = open_log(load_settings(config))
    records = log.control.read_range(news.topic, 0, later[0], 1)
    log.close()
    at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(records.timestamps_ms[0] / 1000))
    moment = f"{at}.{records.timestamps_ms[0] % 1000:03d}+00:00"
    for place, low in ((str(eids[1]), eids[1]), ("beginning", 0), (moment, later[0]), ("end", None)):
        assert run("durable", "seek", "news", "c:d", "--to", place, "--yes")[0] == 0
        shown = json.loads(run("durable", "show", "news", "c:d", "--json")[1])
        assert shown["low"] == (shown["end"] if low is None else low) or place == moment
        assert eids[-1] < shown["low"] <= later[0] or place != moment
    for place, says in (("soon", "write an EID"), ("2026-11-21", "which time zone")):
        code, _, err = run("durable", "seek", "news", "c:d", "--to", place)
        assert (code, says in err) == (1, True)
    code, _, err = run("durable", "list", "nowhere")
    assert (code, "there is no node nowhere" in err) == (1, True)


def test_commands_go_to_every_store_of_a_node_or_to_the_one_that_is_named(run: Run, tmp_path: Path) -> None:
    for words in (("wide", "--partitions", "2"), ("dead", "--priority-levels", "3")):
        assert run("node", "create", *words)[0] == 0
    assert run("node", "create", "news", "--kind", "channel", "--partitions", "2")[0] == 0
    with serving(tmp_path) as realm:
        wide, news = realm.find("wide"), realm.find("news")
        assert wide is not None and news is not None
        for part in wide.parts:
            realm.publish(part, [b"%d:%s" % (part.partition, body) for body in bodies(5)])
        realm.consumer(news, "durable", "c:d").subscription.close()
        for part in news.parts:
            realm.publish(part, bodies(4))
        with turning(realm):
            peeked = json.loads(run("queue", "peek", "wide", "--json")[1])
            assert [event["body"][0] for event in peeked] == ["0"] * 5 + ["1"] * 5
            code, _, err = run("queue", "peek", "wide", "--from", "1")
            assert (code, "say which by --partition" in err) == (1, True)
            assert len(json.loads(run("queue", "peek", "wide", "--partition", "1", "--from", "1", "--json")[1])) < 6
            code, out, err = run("queue", "move", "wide", "--to", "dead", "--count", "7", "--yes")
            assert (code, out, err) == (0, "queue wide: 7 events are moved\n", "")
            left = json.loads(run("queue", "peek", "wide", "--json")[1])
            assert [event["body"] for event in left] == ["1:00000002", "1:00000003", "1:00000004"]
            assert [len(json.loads(run("queue", "peek", "dead", "--partition", str(at), "--json")[1]))
                    for at in range(3)] == [0, 7, 0], "the level of those that name no priority"  # fmt: skip
            assert run("queue", "purge", "wide", "--yes")[0] == 0
            assert run("queue", "peek", "wide", "--json")[1] == "[]\n"
            assert run("durable", "seek", "news", "c:d", "--to", "end", "--yes")[0] == 0
            shown = json.loads(run("durable", "show", "news", "c:d", "--json")[1])
            assert [(row["partition"], row["low"] == row["end"]) for row in shown] == [(0, True), (1, True)]
            code, _, err = run("durable", "seek", "news", "c:d", "--to", "2")
            assert (code, "say which by --partition" in err) == (1, True)
            assert run("durable", "seek", "news", "c:d", "--to", "beginning", "--partition", "1", "--yes")[0] == 0
        assert len(realm.consumer(news, "durable", "c:d").receive(4)) == 4
        with turning(realm):
            assert run("durable", "delete", "news", "c:d", "--yes")[0] == 0
            assert json.loads(run("durable", "list", "news", "--json")[1]) == []


def notes(tmp_path: Path) -> list[tuple[str, str]]:
    """What the journal says was deleted: node, durable."""
    log = open_embedded(tmp_path / "realm")
    entries = [entry for _, record in tail(log, journal_topic("um"), 0) for entry in record["entries"]]
    log.close()
    return [(entry["node"], entry["durable"]) for entry in entries if entry["operation"] == "delete"]


def test_nodes_and_durables_are_deleted_with_and_without_a_gateway(run: Run, tmp_path: Path) -> None:
    for name in ("orders", "bills"):
        run("node", "create", name)
    file = tmp_path / "nodes.yaml"
    file.write_text("- {name: news, kind: channel}\n")
    with serving(tmp_path) as realm:
        realm.create("news", "channel")
        orders = realm.find("orders")
        assert orders is not None
        realm.publish(orders, bodies(2))
        consumer = realm.consumer(orders)
        realm.consumer(realm.find("news"), "durable", "c:d").subscription.close()  # type: ignore[arg-type]
        with turning(realm):
            assert run("node", "delete", "orders", "--yes") == (0, "queue orders is deleted\n", "")
        assert realm.answer(SubscriptionLost).subscription is consumer.subscription
        assert realm.find("orders") is None
    assert run("durable", "delete", "news", "c:d", "--yes")[0] == 0
    assert run("node", "apply", str(file), "--prune", "--yes")[1].splitlines() == [
        "delete queue bills, with its events",
        "1 node is as the file says",
        "1 change is made",
    ]
    assert run("node", "delete", "news", "--yes")[0] == 0
    assert run("node", "list", "--json")[1] == "[]\n"
    assert notes(tmp_path) == [("orders", ""), ("news", "c:d"), ("bills", ""), ("news", "")]


class Terminal(io.StringIO):
    """Someone who is asked."""

    def isatty(self) -> bool:
        return True


def test_whatever_destroys_asks_first_on_a_terminal(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(tmp_path) as realm:
        node, news = realm.create("orders"), realm.create("news", "channel")
        realm.create("dead")
        realm.publish(node, bodies(3))
        realm.consumer(news, "durable", "c:d")
        realm.publish(news, bodies(3))
    (tmp_path / "nodes.yaml").write_text("- {name: dead}\n")
    before = [run(*words) for words in (("queue", "peek", "orders"), ("durable", "list"), ("node", "list"))]
    for words, question in (
        (("queue", "purge", "orders"), "for ever?"),
        (("queue", "move", "orders", "--to", "dead"), "Move all events of queue orders to dead?"),
        (("durable", "seek", "news", "c:d", "--to", "end"), "Move durable c:d of news from "),
        (("durable", "delete", "news", "c:d"), "Delete durable c:d of news, with at most "),
        (("node", "delete", "orders"), "Delete queue orders and its events"),
        (("node", "apply", str(tmp_path / "nodes.yaml"), "--prune"), "Make 2 changes?"),
    ):
        for answer in ("n\n", ""):
            monkeypatch.setattr("sys.stdin", Terminal(answer))
            code, out, err = run(*words)
            assert (code, question in out, out.endswith("[y/N] "), err) == (1, True, True, ""), words
    monkeypatch.undo()
    assert [run(*words) for words in (("queue", "peek", "orders"), ("durable", "list"), ("node", "list"))] == before
    assert notes(tmp_path) == []
