"""One number of messages everywhere: in commands, in metrics and, on Kafka, in the lag that a foreign client computes;
also of queues that nothing was consumed from, and with no gateway there."""

from __future__ import annotations

import json
from contextlib import closing
from typing import Any

import pytest
from kafka import KafkaConsumer, TopicPartition
from kafka.admin import KafkaAdminClient

from tests.kit.processes.admin_pages import Watch
from tests.kit.processes.gateway import GatewayProcess, StartGateway
from tests.kit.wire import frames
from tests.kit.wire.peer import Peer
from tests.kit.wire.reloading import MESSAGE
from tests.kit.wire.transacting import Transacting

ADMIN = {"listen": "http://127.0.0.1:0"}
NUMBERS = ("stored", "waiting", "unsettled", "delayed")


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("kind", ["embedded", "kafka"])
def test_commands_metrics_and_lag_agree(new_gateway: StartGateway, kind: str, partitions: int) -> None:
    served = new_gateway(kind, admin=ADMIN)
    for name, queues in (("orders", "queue"), ("untouched", "queue"), ("news", "channel")):
        served.command("node", "create", name, "--kind", queues, "--partitions", str(partitions))
    with Peer(served.port, container="reader") as peer, Transacting(served.port) as other:
        peer.consumer(frames.source("news", durable=2, capability="topic"), credit=0, name="sub")
        for name, count, queues in (("orders", 12, "queue"), ("untouched", 5, "queue"), ("news", 4, "channel")):
            peer.stored(name, *[MESSAGE] * count, kind=queues)
        other.publisher("untouched", "queue")
        other.control()
        for _ in range(3):
            transaction = other.declare()
            other.post(transaction, MESSAGE)
            other.dispositions(1)
            assert other.discharge(transaction) == "accepted"
        peer.consumer("orders", credit=7, handle=3, name="taker")
        came = peer.receive(7, 3)
        peer.settle([seen.field(1) for seen in came[:3]], frames.state("accepted"))
        wanted: dict[tuple[str, str], tuple[int, ...]] = {
            ("orders", "queue"): (9, 5, 4, 0),
            ("untouched", "queue"): (8, 8, 0, 0),
            ("news", "reader:sub"): (4, 4, 0, 0),
        }
        agree(served, wanted)
    served.restart()
    later: dict[tuple[str, str], tuple[int, ...]] = {key: (sums[0], sums[0], 0, 0) for key, sums in wanted.items()}
    agree(served, later)
    served.stop()
    assert listed_counts(served) == later, "without a gateway, too"
    assert nodes(served) == {key[0]: stored for key, (stored, *_) in later.items()}


def agree(served: GatewayProcess, wanted: dict[tuple[str, str], tuple[int, ...]]) -> None:
    watch = Watch.of(served)
    watch.until(lambda: measured(watch) == wanted)
    assert listed_counts(served) == wanted
    by_node = {key[0]: stored for key, (stored, *_) in wanted.items()}
    assert nodes(served) == by_node
    metrics = watch.metrics()
    of_nodes = dict.fromkeys(by_node, 0.0)
    for (name, labels), number in metrics.items():
        if name == "realmgate_node_events":
            of_nodes[labels[0]] += number
    assert of_nodes == by_node
    if served.settings["realm"]["kind"] == "kafka":
        watch.until(lambda: lags(served) == {key: stored for key, (stored, *_) in wanted.items()})


def measured(watch: Watch) -> dict[tuple[str, str], tuple[int, ...]]:
    """All stores of each durable together; nothing while one is being counted."""
    metrics = watch.metrics()
    if metrics["realmgate_stores_counting", ()]:
        return {}
    sums: dict[tuple[str, str], list[int]] = {}
    for (name, labels), number in metrics.items():
        for at, what in enumerate(NUMBERS):
            if name == f"realmgate_durable_{what}_events":
                key = tuple(sorted(zip(("durable", "node", "partition"), labels, strict=True)))
                names = dict(key)
                sums.setdefault((names["node"], names["durable"]), [0, 0, 0, 0])[at] += int(number)
    return {key: tuple(counts) for key, counts in sums.items()}


def listed_counts(served: GatewayProcess) -> dict[tuple[str, str], tuple[int, ...]]:
    sums: dict[tuple[str, str], list[int]] = {}
    for row in printed(served, "durable", "list"):
        its = sums.setdefault((row["node"], row["durable"]), [0, 0, 0, 0])
        for at, what in enumerate(NUMBERS):
            its[at] += row[what]
    return {key: tuple(counts) for key, counts in sums.items()}


def nodes(served: GatewayProcess) -> dict[str, int]:
    listed = {row["name"]: row["messages"] for row in printed(served, "node", "list")}
    shown = {name: printed(served, "node", "show", name)["messages"] for name in listed}
    assert listed == shown
    return listed


def printed(served: GatewayProcess, *words: str) -> Any:
    return json.loads(served.command(*words, "--json"))


def lags(served: GatewayProcess) -> dict[tuple[str, str], int]:
    """As Kafka's tools compute them, by kafka-python."""
    bootstrap, groups = served.settings["realm"]["bootstrap"], {}
    for row in printed(served, "durable", "list"):
        groups[row["node"], row["durable"]] = row["group"]
    with (
        closing(KafkaAdminClient(bootstrap_servers=bootstrap)) as admin,
        closing(KafkaConsumer(bootstrap_servers=bootstrap)) as consumer,
    ):
        lag = {}
        for key, group in groups.items():
            offsets: dict[TopicPartition, Any] = admin.list_group_offsets(group).get(group, {})
            ends = consumer.end_offsets([*offsets]) if offsets else {}
            lag[key] = sum(ends[place] - offsets[place].offset for place in offsets)
        return lag
