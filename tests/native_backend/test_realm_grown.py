"""A node whose topic an operator gave more partitions stays what it was, and the log says what is not seen; it takes
the others in when it is told to."""

from __future__ import annotations

import uuid

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions

from native_backend.log.port import Append
from native_backend.nodes.metadata_writer import set_properties
from native_backend.nodes.properties import Properties
from native_backend.subscriptions.partitioned import partition_of
from tests.kit.realm.realm_process import RealmProcess
from tests.kit.realm.worlds import KafkaWorld


@pytest.mark.filterwarnings("ignore:(read|open)_text is deprecated:DeprecationWarning")
def test_a_topic_that_grew_is_the_node_in_its_first_partition(
    kafka_bootstrap: str, caplog: pytest.LogCaptureFixture
) -> None:
    world = KafkaWorld(kafka_bootstrap)
    realm = RealmProcess(world, f"g{uuid.uuid4().hex[:8]}").open()
    node = realm.create("orders")
    eids = realm.publish(node, [b"before"])
    admin = AdminClient({"bootstrap.servers": kafka_bootstrap})
    admin.create_partitions([NewPartitions(node.topic, 3)])[node.topic].result(10.0)
    consumer = realm.consumer(node)
    realm.until(lambda: realm.log.control.find_topics([node.topic])[node.topic].partitions == 3, "the partitions")
    world.open().append(Append(node.topic, 1, [b"k"], [b"elsewhere"]))
    words = f"topic {node.topic} has 3 partitions"

    def told() -> bool:
        eids.extend(realm.publish(node, [b"after"]))
        return words in caplog.text

    realm.until(told, "the warning")
    assert consumer.receive(len(eids)) == eids
    assert consumer.drain() == []
    assert caplog.text.count(words) == 1
    consumer.acknowledge(eids)
    set_properties(realm.log, realm.prefix, "orders", lambda _: Properties(partitions=3), realm.clock)
    whole = realm.find("orders")
    assert whole is not None
    taken_in = realm.consumer(whole)
    [eid] = taken_in.receive(1)
    assert (partition_of(eid), taken_in.bodies[eid]) == (1, b"elsewhere")
    realm.close()
    world.close()
