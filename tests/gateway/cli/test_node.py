"""Nodes and their properties on the command line: set, shown, adopted, and applied from a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from native_backend.log import open as logs
from native_backend.log.port import TopicSpec
from native_backend.log.sqlite.control import SqliteControl
from tests.gateway.cli.command_line import Run, config, run

__all__ = ["config", "run"]  # fixtures


def test_properties_are_set_shown_and_changed(run: Run) -> None:
    run("node", "create", "dead")
    words = ("--ttl", "1h", "--attempts", "5", "--dead-letter", "dead", "--capacity-bytes", "10MiB")
    assert run("node", "create", "orders", *words)[0] == 0
    shown = json.loads(run("node", "show", "orders", "--json")[1])["properties"]
    assert (shown["ttl_ms"], shown["attempts"], shown["dead_letter"]) == (3_600_000, 5, "dead")
    assert shown["capacity_bytes"] == 10 * 2**20
    code, out, err = run(
        "node", "set", "orders", "ttl=90s", "redelivery_delay=5s", "redelivery=exponential", "attempts=none"
    )
    assert (code, err) == (0, "")
    assert out == (
        "queue orders: ttl 1h -> 90s; attempts 5 -> none; redelivery-delay none -> 5s; "
        "redelivery constant -> exponential\n"
    )
    text = run("node", "show", "orders")[1]
    for line in ("ttl 90s", "attempts none", "capacity-bytes 10MiB", "dead-letter dead", "redelivery exponential"):
        assert f"  {line}\n" in text
    assert run("node", "set", "orders", "ttl=90s")[1] == "queue orders: nothing changes\n"
    assert run("node", "create", "orders", "--ttl", "90s")[0] == 0, "as it is"
    code, _, err = run("node", "create", "orders", "--ttl", "2h")
    assert code == 1
    assert "exists (ttl 90s -> 2h): change it by realmgate node set" in err
    assert run("node", "set", "nowhere", "ttl=1s")[0] == 1


def test_all_properties_that_cannot_be_set_are_reported_at_once(run: Run) -> None:
    run("node", "create", "orders")
    code, out, err = run(
        "node", "set", "orders", "tttl=1h", "attempts=many", "ttl", "honour-capacity=yes", "type=solid"
    )
    assert (code, out) == (1, "")
    assert [line.removeprefix("realmgate: ") for line in err.splitlines()] == [
        "there is no property tttl; write ttl",
        "attempts=many: write a whole number with or without a unit (there is none), or none, as in attempts=5",
        "'ttl' is no key=value; write ttl=VALUE",
        "honour-capacity=yes: write true or false, as in honour-capacity=true",
        "type=solid: write one of reliable, persistent, mixed, as in type=mixed",
    ]
    code, _, err = run("node", "set", "orders", "honour-capacity=true")
    assert (code, "honour_capacity without a capacity" in err) == (1, True)
    code, _, err = run("node", "set", "orders", "dead-letter=nowhere")
    assert (code, "no node nowhere for dead letters yet" in err) == (0, True)
    code, _, err = run("node", "create", "wide", "--partitions", "65")
    assert (code, "from 1 to 64" in err) == (1, True)
    code, _, err = run("node", "create", "wide", "--partitions", "2", "--priority-levels", "3")
    assert (code, "every level is a partition" in err) == (1, True)


def test_a_node_of_several_partitions_is_made_shown_and_grows(run: Run, tmp_path: Path) -> None:
    assert run("node", "create", "wide", "--partitions", "2")[0] == 0
    shown = json.loads(run("node", "show", "wide", "--json")[1])
    assert (shown["partitions"], len({store["store"] for store in shown["stores"]})) == (2, 2)
    assert run("node", "set", "wide", "partitions=3")[1] == "queue wide: partitions 2 -> 3\n"
    assert "partition 2 (store " in run("node", "show", "wide")[1]
    code, _, err = run("node", "set", "wide", "partitions=1")
    assert (code, "they only grow" in err) == (1, True)
    file = tmp_path / "nodes.yaml"
    file.write_text("- {name: wide, ttl: 1h}\n- {name: urgent, priority-levels: 3}\n")
    code, out, err = run("node", "apply", str(file), "--yes")
    assert (code, err) == (0, "")
    assert out.startswith("create queue urgent: priority-levels 3\nchange queue wide: ttl none -> 1h\n"), out
    file.write_text("- {name: wide, partitions: 1}\n- {name: urgent, priority-levels: 4}\n")
    code, _, err = run("node", "apply", str(file), "--yes")
    assert (code, "they only grow" in err, "fixed when a node is created" in err) == (2, True, True)


def test_a_topic_is_adopted_and_outlives_its_node(run: Run, config: Path, tmp_path: Path) -> None:
    run("node", "list")
    log = logs.open_embedded(tmp_path / "realm")
    log.control.create_topics([TopicSpec("shop.orders"), TopicSpec("shop.wide", partitions=2)])
    log.control.put("shop.orders", b"key", b"was here before")
    code, out, err = run("node", "create", "orders", "--topic", "shop.orders")
    assert (code, err) == (0, "")
    assert out.rstrip().endswith("topic shop.orders")
    assert "(adopted)" in run("node", "show", "orders")[1]
    for topic, says in (
        ("shop.orders", "is that of node 'orders'"),
        ("shop.nowhere", "there is no topic shop.nowhere to adopt"),
        ("um.journal", "is the realm's own"),
    ):
        code, _, err = run("node", "create", "second", "--topic", topic)
        assert (code, says in err) == (1, True), err
    code, _, err = run("node", "create", "second", "--topic", "shop.wide", "--partitions", "3")
    assert (code, "has 2 partitions, not 3: a node has them all" in err) == (1, True), err
    assert run("node", "create", "second", "--topic", "shop.wide")[0] == 0
    assert json.loads(run("node", "show", "second", "--json")[1])["partitions"] == 2
    assert run("node", "delete", "orders")[:2] == (0, "queue orders is deleted\n")
    assert "shop.orders" in log.control.topics("shop.")
    assert run("node", "create", "orders", "--topic", "shop.orders")[0] == 0
    assert run("node", "delete", "orders", "--with-topic")[0] == 0
    assert "shop.orders" not in log.control.topics("shop.")
    log.close()


NODES = """
- name: dead
- name: orders
  ttl: 1h
  attempts: 5
  dead-letter: dead
- name: news
  kind: channel
  acl:
    - {who: "user:ann", allow: [publish]}
"""


def test_a_file_of_nodes_is_applied_after_its_difference_was_shown(run: Run, tmp_path: Path) -> None:
    run("node", "create", "old")
    run("node", "create", "orders", "--ttl", "2h")
    file = tmp_path / "nodes.yaml"
    file.write_text(NODES, encoding="utf-8")
    code, out, err = run("node", "apply", str(file), "--dry-run")
    difference = [
        "create queue dead",
        "create channel news: acl user:ann: publish",
        "change queue orders: ttl 2h -> 1h; dead-letter none -> dead; attempts none -> 5",
        "not in the file, and left alone: old",
    ]
    assert (code, out.splitlines(), err) == (0, difference, "")
    assert len(json.loads(run("node", "list", "--json")[1])) == 2, "nothing was done"
    code, out, _ = run("node", "apply", str(file), "--yes")
    assert (code, out.splitlines()) == (0, [*difference, "3 changes are made"])
    orders = json.loads(run("node", "show", "orders", "--json")[1])["properties"]
    assert (orders["ttl_ms"], orders["attempts"], orders["dead_letter"]) == (3_600_000, 5, "dead")
    again = run("node", "apply", str(file), "--yes")[1].splitlines()
    assert again == ["3 nodes are as the file says", "not in the file, and left alone: old"]
    assert run("node", "apply", str(file), "--prune", "--yes")[1].splitlines()[0] == "delete queue old, with its events"
    assert "old" not in run("node", "list")[1]


def test_applying_a_file_warns_of_nodes_that_one_broker_keeps(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SqliteControl, "certain_copies", lambda *_: 1)  # a Kafka of one broker
    (tmp_path / "nodes.yaml").write_text("- {name: orders}\n- {name: ticks, type: reliable}\n")
    code, _, err = run("node", "apply", str(tmp_path / "nodes.yaml"), "--yes")
    assert (code, err.count("\n")) == (0, 1)
    assert "warning: an event of node 'orders' is certain to be on 1 broker only" in err


WRONG_NODES = """
- name: orders
  tttl: 1h
- name: orders
- kind: queue
- name: news
  kind: topic
- name: bills
  ttl: soon
  honour-capacity: true
- name: lost
  dead-letter: nowhere
- name: taken
  kind: channel
- 5
- name: x
  acl: [{who: ann, allow: [fly]}, {who: "*"}]
  partitions: many
- name: last
  honour-capacity: true
- name: taken
"""


def test_all_problems_of_a_file_of_nodes_are_reported(run: Run, tmp_path: Path) -> None:
    run("node", "create", "taken")
    file = tmp_path / "nodes.yaml"
    file.write_text(WRONG_NODES, encoding="utf-8")
    code, out, err = run("node", "apply", str(file), "--yes")
    assert (code, out) == (2, "")
    assert [line.removeprefix(f"{file}:") for line in err.splitlines()] == [
        "3: unknown key tttl; write ttl",
        "5: name is missing; write name: orders",
        "7: there is no kind topic; write queue or channel",
        "9: ttl=soon: write a whole number with or without a unit (ms, s, m, h, d), or none, as in ttl=1h",
        "11: there is no node 'nowhere' for dead letters; name one that is",
        "13: node 'taken' is a queue, and stays one; delete it first, or use another name",
        "15: a node is a mapping, not integer; write - name: orders",
        '17: a grant names who and what; write {who: "user:ann", allow: [publish]}',
        "18: partitions=many: write a whole number with or without a unit (there is none), or none, as in partitions=4",
        "19: honour_capacity without a capacity: set capacity_events or capacity_bytes",
        "21: 'taken' is in line 13, too; name every node once",
    ]
