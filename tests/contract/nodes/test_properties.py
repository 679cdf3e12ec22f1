"""The contract of the realm, continued: what is set on nodes, kept where everybody sees it, and changed live."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import orjson
import pytest

from native_backend.limits import RealmLimits
from native_backend.log.port import Control, Log, LogError, Topic, TopicSpec
from native_backend.nodes import admin
from native_backend.nodes.admin import create_node, delete_node
from native_backend.nodes.metadata import realm_topic
from native_backend.nodes.metadata_writer import realm_metadata, set_properties, set_realm_acl
from native_backend.nodes.node import Node, encode_node, node_key
from native_backend.nodes.properties import Grant, Properties, PropertyError
from tests.kit.realm.fixtures import Start, bodies, realm, start, world
from tests.kit.realm.other_control import ControlledLog, OtherControl
from tests.kit.realm.realm_process import RealmProcess
from tests.kit.realm.worlds import World

__all__ = ["realm", "start", "world"]  # fixtures

FULL = Properties(
    type="persistent",
    capacity_events=1000,
    capacity_bytes=10**6,
    honour_capacity=True,
    ttl_ms=60_000,
    dead_letter="dead",
    attempts=5,
    redelivery_delay_ms=100,
    redelivery_delay_max_ms=5_000,
    redelivery="exponential",
    acl=(Grant("user:ann", frozenset({"publish"})), Grant("*", frozenset({"peek", "subscribe"}))),
)


def test_every_property_is_kept_and_seen_by_another_process(world: World, realm: RealmProcess) -> None:
    other = world.open()
    node = admin.create_node(other, realm.prefix, "orders", "queue", realm.clock, FULL)
    assert node.properties == FULL
    queue = realm.find("orders")
    assert queue == node
    assert realm_metadata(other, realm.prefix).nodes["orders"].created_us == node.created_us > 0


def test_a_change_reaches_a_serving_realm_by_itself(world: World, start: Start) -> None:
    realm = start(RealmLimits(metadata_interval_s=0.02))
    node = realm.create("orders")
    consumer = realm.consumer(node)
    changes: list[Node | None] = []
    realm.realm.on_changed(changes.append)
    other = world.open()
    changed = set_properties(other, realm.prefix, "orders", lambda p: replace(p, attempts=5), realm.clock)
    set_properties(other, realm.prefix, "orders", lambda p: replace(p, attempts=5), realm.clock)  # no change
    realm.until(lambda: bool(changes), "the change")
    assert changes == [changed] == [replace(node, properties=Properties(attempts=5))]
    assert realm.realm.node("orders") == changed
    eids = realm.publish(node, bodies(3))  # the node as it was at attach is the same store
    assert consumer.receive(3) == eids
    set_realm_acl(other, realm.prefix, FULL.acl)
    realm.until(lambda: len(changes) == 2, "the realm's grants")
    assert changes[1] is None
    assert realm_metadata(other, realm.prefix).acl == FULL.acl
    assert set_properties(other, realm.prefix, "nothing", lambda p: p, realm.clock) is None


class Interrupted(OtherControl):
    """Another process does something before the first call of that name."""

    def __init__(self, control: Control, call: str, change: Callable[[], object]) -> None:
        super().__init__(control)
        self._call, self._change = call, change

    def __getattr__(self, name: str) -> object:
        if name == self._call:
            self._call = ""
            self._change()
        return super().__getattr__(name)


def while_it_is_changed(world: World, realm: RealmProcess, call: str, change: Callable[[Log], object]) -> Node | None:
    """Node orders, with other properties; `change` comes between."""
    other, own = world.open(), world.open()
    log: Any = ControlledLog(own, Interrupted(own.control, call, lambda: change(other)))
    return set_properties(log, realm.prefix, "orders", lambda p: replace(p, ttl_ms=9), realm.clock)


def test_a_node_deleted_while_it_is_changed_stays_deleted(world: World, realm: RealmProcess) -> None:
    realm.create("orders")
    assert while_it_is_changed(world, realm, "put", lambda log: delete_node(log, realm.prefix, "orders")) is None
    assert realm.find("orders") is None
    renewed = realm.create("orders")
    assert renewed.properties == Properties()


@pytest.mark.parametrize("call", ["find_topics", "put"])
def test_a_node_made_anew_while_the_earlier_one_is_changed_lives(world: World, realm: RealmProcess, call: str) -> None:
    if call == "put" and world.name != "kafka":
        call = "find_topics"  # where what is older of a key is gone at once, that moment is not to be seen
    earlier = realm.create("orders")

    def renew(log: Log) -> None:
        assert delete_node(log, realm.prefix, "orders")
        create_node(log, realm.prefix, "orders", "channel", realm.clock, Properties(attempts=3))

    assert while_it_is_changed(world, realm, call, renew) is None
    renewed = realm.find("orders")
    assert renewed is not None
    assert (renewed.kind, renewed.properties, renewed.store == earlier.store) == (
        "channel",
        Properties(attempts=3),
        False,
    )
    newest = realm.log.control.read_range(realm_topic(realm.prefix), 0, 0, 1000)
    values = [value for key, value in zip(newest.keys, newest.values, strict=True) if key == node_key("orders")]
    assert values[-1] is not None
    assert orjson.loads(values[-1])["store"] == renewed.store, "compaction leaves this one"


class Leaderless(OtherControl):
    """Does not find any topic: they have no leader at the moment."""

    def find_topics(self, names: Sequence[str]) -> dict[str, Topic]:
        return {}


def test_a_node_whose_topic_has_no_leader_just_now_is_changed_and_stays(realm: RealmProcess) -> None:
    node = realm.create("orders")
    log: Any = ControlledLog(realm.log, Leaderless(realm.log.control))
    changed = set_properties(log, realm.prefix, "orders", lambda p: replace(p, ttl_ms=9), realm.clock)
    assert realm.find("orders") == changed == replace(node, properties=Properties(ttl_ms=9))


def test_a_node_that_is_created_again_keeps_its_properties(realm: RealmProcess) -> None:
    admin.create_node(realm.log, realm.prefix, "news", "channel", realm.clock, Properties(ttl_ms=1))
    again = admin.create_node(realm.log, realm.prefix, "news", "channel", realm.clock, Properties(ttl_ms=2))
    assert again.properties == Properties(ttl_ms=1)
    assert realm.create("news", "channel") == again


def test_records_of_the_version_before_are_read_and_those_of_a_later_one_are_refused(realm: RealmProcess) -> None:
    node = realm.create("orders")
    record = orjson.loads(encode_node(node, 5))
    old = {key: record[key] for key in ("name", "kind", "topic", "topic_id", "store", "created_us")} | {"v": 1}
    topic = realm_topic(realm.prefix)
    realm.log.control.put(topic, node_key("orders"), None)
    realm.log.control.put(topic, node_key("orders"), orjson.dumps(old))
    assert realm.find("orders") == node
    realm.log.control.put(topic, node_key("orders"), orjson.dumps(record | {"v": 4}))
    with pytest.raises(LogError, match="has version 4; this release knows 1, 2, 3"):
        realm_metadata(realm.log, realm.prefix)


def test_properties_that_no_node_can_have_are_refused_all_at_once(realm: RealmProcess) -> None:
    wrong = Properties(
        type="solid",  # type: ignore[arg-type]
        ttl_ms=-1,
        dead_letter="orders",
        acl=(Grant("ann", frozenset({"publish", "fly"})), Grant("*", frozenset())),
    )
    with pytest.raises(PropertyError) as refused:
        admin.create_node(realm.log, realm.prefix, "orders", "queue", realm.clock, wrong)
    assert [problem.split(":")[0] for problem in refused.value.problems] == [
        "ttl_ms is -1",
        "type is 'solid'",
        "dead_letter is 'orders' itself",
        "acl grants to 'ann'",
        "acl grants fly to ann",
        "acl grants nothing to *",
    ]
    for contradiction in (
        Properties(honour_capacity=True),
        Properties(redelivery="linear"),
        Properties(redelivery_delay_ms=10, redelivery_delay_max_ms=9),
    ):
        with pytest.raises(PropertyError):
            admin.create_node(realm.log, realm.prefix, "orders", "queue", realm.clock, contradiction)
    assert admin.list_nodes(realm.log, realm.prefix) == []


def test_a_node_whose_events_one_broker_keeps_is_warned_of(
    world: World, realm: RealmProcess, caplog: pytest.LogCaptureFixture
) -> None:
    """The brokers of the tests are one; an embedded realm has none."""
    lone = world.name == "kafka"
    node = realm.create("orders")
    assert ("raise min.insync.replicas" in caplog.text) == lone
    warning = admin.durability_warning(realm.log, node)
    assert (warning is not None and "node 'orders'" in warning) == lone
    short = replace(node, properties=Properties(type="reliable"))
    assert admin.durability_warning(realm.log, short) is None


def test_a_topic_that_is_adopted_again_begins_anew(start: Start) -> None:
    realm = start(RealmLimits(metadata_interval_s=0.02))
    topic = f"{realm.prefix}-shop"
    realm.log.control.create_topics([TopicSpec(topic)])
    realm.log.control.put(topic, b"key", b"was here before")

    def adopted() -> Node:
        admin.create_node(realm.log, realm.prefix, "orders", "queue", realm.clock, topic=topic)
        node = realm.find("orders")
        assert node is not None
        assert (node.topic, node.adopted) == (topic, True)
        return node

    first = realm.consumer(adopted())
    eids = first.receive(1)
    first.acknowledge(eids)
    realm.journal()  # all of it can be read
    admin.delete_node(realm.log, realm.prefix, "orders")
    assert realm.find("orders") is None
    again = realm.consumer(adopted())
    assert again.receive(1) == eids
    realm.kill()
    later = start()
    node = later.find("orders")
    assert node is not None
    assert later.consumer(node).receive(1) == eids
    admin.delete_node(later.log, later.prefix, "orders", with_topic=True)
    assert topic not in later.log.control.topics(topic)


def test_what_was_acknowledged_in_an_adopted_queue_stays_so_after_a_kill(start: Start) -> None:
    """The journal ends behind the mark of its last transaction; the owner knows the record. Its snapshot of the new
    durable was taken for one of an earlier durable, and with no snapshot at all the journal was not read."""
    realm = start()
    topic = f"{realm.prefix}-shop"
    realm.log.control.create_topics([TopicSpec(topic)])
    realm.log.control.put(topic, b"key", b"was here before")
    admin.create_node(realm.log, realm.prefix, "orders", "queue", realm.clock, topic=topic)
    node = realm.find("orders")
    assert node is not None
    consumer = realm.consumer(node)
    consumer.acknowledge(consumer.receive(1))
    realm.kill()
    later = start()
    node = later.find("orders")
    assert node is not None
    assert later.consumer(node).drain() == []
