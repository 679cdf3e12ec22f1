"""The contract of the realm, continued: what is set on nodes, kept where everybody sees it, and changed live."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import orjson
import pytest

from native_backend import admin
from native_backend.admin import create_node, delete_node
from native_backend.limits import RealmLimits
from native_backend.log import Log, LogError, Topic, TopicSpec
from native_backend.metadata import realm_topic
from native_backend.metadata_writer import realm_metadata, set_properties, set_realm_acl
from native_backend.nodes import Node, encode_node, node_key
from native_backend.properties import Grant, Properties, PropertyError
from tests.native_backend.gateway import Gateway
from tests.native_backend.logs.worlds import World
from tests.native_backend.realm_world import Start, bodies, gateway, start, world

__all__ = ["gateway", "start", "world"]  # fixtures

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


def test_every_property_is_kept_and_seen_by_another_process(world: World, gateway: Gateway) -> None:
    other = world.open()
    node = admin.create_node(other, gateway.prefix, "orders", "queue", gateway.clock, FULL)
    assert node.properties == FULL
    found = gateway.find("orders")
    assert found == node
    assert realm_metadata(other, gateway.prefix).nodes["orders"].created_us == node.created_us > 0


def test_a_change_reaches_a_serving_realm_by_itself(world: World, start: Start) -> None:
    gateway = start(RealmLimits(metadata_interval_s=0.02))
    node = gateway.create("orders")
    consumer = gateway.consumer(node)
    told: list[Node | None] = []
    gateway.realm.on_changed(told.append)
    other = world.open()
    changed = set_properties(other, gateway.prefix, "orders", lambda p: replace(p, attempts=5), gateway.clock)
    set_properties(other, gateway.prefix, "orders", lambda p: replace(p, attempts=5), gateway.clock)  # no change
    gateway.until(lambda: bool(told), "the change")
    assert told == [changed] == [replace(node, properties=Properties(attempts=5))]
    assert gateway.realm.node("orders") == changed
    eids = gateway.publish(node, bodies(3))  # the node as it was at attach is the same store
    assert consumer.receive(3) == eids
    set_realm_acl(other, gateway.prefix, FULL.acl)
    gateway.until(lambda: len(told) == 2, "the realm's grants")
    assert told[1] is None
    assert realm_metadata(other, gateway.prefix).acl == FULL.acl
    assert set_properties(other, gateway.prefix, "nothing", lambda p: p, gateway.clock) is None


class Interrupted:
    """A log on which somebody else does something before the first call of that name."""

    def __init__(self, log: Log, call: str, act: Callable[[], object]) -> None:
        self._log, self._call, self._act = log, call, act

    def __getattr__(self, name: str) -> object:
        if name == self._call:
            self._call = ""
            self._act()
        return getattr(self._log, name)


def while_it_is_changed(world: World, gateway: Gateway, call: str, act: Callable[[Log], object]) -> Node | None:
    """Node orders, with other properties; `act` comes between."""
    other = world.open()
    log = Interrupted(world.open(), call, lambda: act(other))
    return set_properties(log, gateway.prefix, "orders", lambda p: replace(p, ttl_ms=9), gateway.clock)  # type: ignore[arg-type]


def test_a_node_deleted_while_it_is_changed_stays_deleted(world: World, gateway: Gateway) -> None:
    gateway.create("orders")
    assert while_it_is_changed(world, gateway, "put", lambda log: delete_node(log, gateway.prefix, "orders")) is None
    assert gateway.find("orders") is None
    renewed = gateway.create("orders")
    assert renewed.properties == Properties()


@pytest.mark.parametrize("call", ["find_topics", "put"])
def test_a_node_made_anew_while_the_earlier_one_is_changed_lives(world: World, gateway: Gateway, call: str) -> None:
    if call == "put" and world.name != "kafka":
        call = "find_topics"  # where what is older of a key is gone at once, that moment is not to be seen
    earlier = gateway.create("orders")

    def renew(log: Log) -> None:
        assert delete_node(log, gateway.prefix, "orders")
        create_node(log, gateway.prefix, "orders", "channel", gateway.clock, Properties(attempts=3))

    assert while_it_is_changed(world, gateway, call, renew) is None
    renewed = gateway.find("orders")
    assert renewed is not None
    assert (renewed.kind, renewed.properties, renewed.store == earlier.store) == (
        "channel",
        Properties(attempts=3),
        False,
    )
    newest = gateway.log.read_range(realm_topic(gateway.prefix), 0, 0, 1000)
    values = [value for key, value in zip(newest.keys, newest.values, strict=True) if key == node_key("orders")]
    assert values[-1] is not None
    assert orjson.loads(values[-1])["store"] == renewed.store, "compaction leaves this one"


class Leaderless:
    """A log that does not tell of topics: they have no leader at the moment."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def find_topics(self, names: Sequence[str]) -> dict[str, Topic]:
        return {}

    def __getattr__(self, name: str) -> object:
        return getattr(self._log, name)


def test_a_node_whose_topic_has_no_leader_just_now_is_changed_and_stays(gateway: Gateway) -> None:
    node = gateway.create("orders")
    log: Any = Leaderless(gateway.log)
    changed = set_properties(log, gateway.prefix, "orders", lambda p: replace(p, ttl_ms=9), gateway.clock)
    assert gateway.find("orders") == changed == replace(node, properties=Properties(ttl_ms=9))


def test_a_node_that_is_created_again_keeps_its_properties(gateway: Gateway) -> None:
    admin.create_node(gateway.log, gateway.prefix, "news", "channel", gateway.clock, Properties(ttl_ms=1))
    again = admin.create_node(gateway.log, gateway.prefix, "news", "channel", gateway.clock, Properties(ttl_ms=2))
    assert again.properties == Properties(ttl_ms=1)
    assert gateway.create("news", "channel") == again


def test_records_of_the_version_before_are_read_and_those_of_a_later_one_are_refused(gateway: Gateway) -> None:
    node = gateway.create("orders")
    record = orjson.loads(encode_node(node, 5))
    old = {key: record[key] for key in ("name", "kind", "topic", "topic_id", "store", "created_us")} | {"v": 1}
    topic = realm_topic(gateway.prefix)
    gateway.log.put(topic, node_key("orders"), None)
    gateway.log.put(topic, node_key("orders"), orjson.dumps(old))
    assert gateway.find("orders") == node
    gateway.log.put(topic, node_key("orders"), orjson.dumps(record | {"v": 4}))
    with pytest.raises(LogError, match="has version 4; this release knows 1, 2, 3"):
        realm_metadata(gateway.log, gateway.prefix)


def test_properties_that_no_node_can_have_are_refused_all_at_once(gateway: Gateway) -> None:
    wrong = Properties(
        type="solid",  # type: ignore[arg-type]
        ttl_ms=-1,
        dead_letter="orders",
        acl=(Grant("ann", frozenset({"publish", "fly"})), Grant("*", frozenset())),
    )
    with pytest.raises(PropertyError) as refused:
        admin.create_node(gateway.log, gateway.prefix, "orders", "queue", gateway.clock, wrong)
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
            admin.create_node(gateway.log, gateway.prefix, "orders", "queue", gateway.clock, contradiction)
    assert admin.list_nodes(gateway.log, gateway.prefix) == []


def test_a_node_whose_events_one_broker_keeps_is_warned_of(
    world: World, gateway: Gateway, caplog: pytest.LogCaptureFixture
) -> None:
    """The brokers of the tests are one; an embedded realm has none."""
    lone = world.name == "kafka"
    node = gateway.create("orders")
    assert ("raise min.insync.replicas" in caplog.text) == lone
    warning = admin.fragile(gateway.log, node)
    assert (warning is not None and "node 'orders'" in warning) == lone
    short = replace(node, properties=Properties(type="reliable"))
    assert admin.fragile(gateway.log, short) is None


def test_a_topic_that_is_adopted_again_begins_anew(start: Start) -> None:
    gateway = start(RealmLimits(metadata_interval_s=0.02))
    topic = f"{gateway.prefix}-shop"
    gateway.log.create_topics([TopicSpec(topic)])
    gateway.log.put(topic, b"key", b"was here before")

    def adopted() -> Node:
        admin.create_node(gateway.log, gateway.prefix, "orders", "queue", gateway.clock, topic=topic)
        node = gateway.find("orders")
        assert node is not None
        assert (node.topic, node.adopted) == (topic, True)
        return node

    first = gateway.consumer(adopted())
    eids = first.receive(1)
    first.acknowledge(eids)
    gateway.journal()  # all of it can be read
    admin.delete_node(gateway.log, gateway.prefix, "orders")
    assert gateway.find("orders") is None
    again = gateway.consumer(adopted())
    assert again.receive(1) == eids
    gateway.kill()
    later = start()
    node = later.find("orders")
    assert node is not None
    assert later.consumer(node).receive(1) == eids
    admin.delete_node(later.log, later.prefix, "orders", with_topic=True)
    assert topic not in later.log.topics(topic)
