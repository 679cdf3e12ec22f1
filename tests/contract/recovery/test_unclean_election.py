"""The contract of the realm on three brokers: a broker that lacks the end of a store becomes its leader. What was
answered as stored is lost then, whatever a gateway does; it says so, and what it takes from then on is given."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from functools import partial

import pytest
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient

from native_backend.nodes.durable import QUEUE
from native_backend.nodes.node import Node
from native_backend.subscriptions.subscription import SubscriptionLost
from tests.contract.actions import wide
from tests.contract.recovery.truncations import acknowledge, alarm, all_of, publish, truncated
from tests.kit.patience import until
from tests.kit.processes.broker import Broker, start_cluster
from tests.kit.processes.replicas import NO_LEADER, Replicas
from tests.kit.realm.fixtures import SPREAD
from tests.kit.realm.realm_process import RealmProcess
from tests.kit.realm.worlds import KafkaWorld

KEPT, LOST, FRESH = 10, 20, 30
LEADER, FOLLOWER = 1, 2  # numbers of brokers


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Broker]]:
    """All are up again after each test."""
    brokers = start_cluster(tmp_path_factory.mktemp("cluster"))
    yield brokers
    for broker in brokers:
        broker.stop()


@pytest.fixture(scope="module")
def world(cluster: list[Broker]) -> Iterator[KafkaWorld]:
    world = KafkaWorld(",".join(broker.bootstrap for broker in cluster))
    yield world
    world.close()


@pytest.fixture(scope="module")
def replicas(cluster: list[Broker]) -> Iterator[Replicas]:
    replicas = Replicas(cluster)
    yield replicas
    replicas.close()


def endanger(cluster: list[Broker], replicas: Replicas, node: Node) -> None:
    """What no operator should do: one broker is enough to answer what comes into that node, and two have it."""
    admin = KafkaAdminClient(bootstrap_servers=[broker.bootstrap for broker in cluster])
    admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, node.topic, {"min.insync.replicas": "1"})])
    admin.close()
    for part in node.parts:
        replicas.place(part.topic, part.partition, [LEADER, FOLLOWER])


def elect(cluster: list[Broker], replicas: Replicas, nodes: list[Node]) -> None:
    """The one that has all of these nodes is killed, and the other one, which was down, leads."""
    cluster[LEADER - 1].kill()
    cluster[FOLLOWER - 1].restart()
    for part in (part for node in nodes for part in node.parts):
        until(partial(_has_none, replicas, part), "no leader: what others lack is lost only when someone says so")
        assert replicas.elect_any(part.topic, part.partition) == FOLLOWER
    cluster[LEADER - 1].restart()  # takes what the new leader has, and drops what it had more


def _has_none(replicas: Replicas, part: Node) -> bool:
    return replicas.leader(part.topic, part.partition) == NO_LEADER


def is_alone(replicas: Replicas, part: Node) -> bool:
    return replicas.in_sync(part.topic, part.partition) == [LEADER]


@SPREAD
def test_what_an_unclean_election_lost_is_counted_and_all_goes_on(
    cluster: list[Broker], world: KafkaWorld, replicas: Replicas, partitions: int
) -> None:
    realm = RealmProcess(world, f"r{uuid.uuid4().hex[:8]}").open()
    queue, channel = wide(realm, "queue", partitions, name="queue"), wide(realm, "channel", partitions, name="channel")
    for node in (queue, channel):
        endanger(cluster, replicas, node)
    holder, durable = realm.consumer(queue), realm.consumer(channel, "durable", "all")
    kept = {node.name: publish(realm, node, KEPT) for node in (queue, channel)}
    cluster[FOLLOWER - 1].kill()
    for part in queue.parts + channel.parts:
        until(partial(is_alone, replicas, part), "one broker that has all of it")
    lost = {node.name: publish(realm, node, LOST) for node in (queue, channel)}
    acknowledge(durable, all_of(durable, len(kept["channel"] + lost["channel"])))
    assert all_of(holder, len(kept["queue"] + lost["queue"])) == sorted(kept["queue"] + lost["queue"])
    left = kept["queue"][::3]
    acknowledge(holder, [place for place in kept["queue"] if place not in left])

    elect(cluster, replicas, [queue, channel])
    fresh = {node.name: publish(realm, node, FRESH) for node in (queue, channel)}
    assert min(fresh["channel"]) <= min(lost["channel"]), "EIDs of what was lost are given anew"
    assert all_of(durable, len(fresh["channel"])) == sorted(fresh["channel"])
    acknowledge(durable, fresh["channel"])
    assert realm.answer(SubscriptionLost).subscription is holder.subscription, "it held what was lost"
    next_one = realm.consumer(queue)
    assert all_of(next_one, len(left + fresh["queue"])) == sorted(left + fresh["queue"])
    acknowledge(next_one, left + fresh["queue"])
    noted = [(QUEUE, part.store) for part in queue.parts] + [("all", part.store) for part in channel.parts]
    assert truncated(realm) == sorted(noted)
    assert alarm(realm) == LOST * len(queue.parts + channel.parts)
    realm.kill()

    second = RealmProcess(world, realm.prefix).open()
    assert second.consumer(queue).drain() == [] and second.consumer(channel, "durable", "all").drain() == []
    assert alarm(second) == 0
    second.close()
