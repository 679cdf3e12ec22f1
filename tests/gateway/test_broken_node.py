"""A node whose topic is gone breaks itself only: commands show it, with what to do, serve all others, and delete it."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from native_backend.log.open import open_embedded, open_kafka
from native_backend.log.port import Log, TopicSpec
from tests.kit.processes.admin_pages import Watch
from tests.kit.processes.gateway import GatewayProcess, embedded_realm, kafka_realm, realmgate, start_gateway
from tests.kit.wire import frames
from tests.kit.wire.peer import Peer
from tests.kit.wire.reloading import MESSAGE

ADMIN = {"listen": "http://127.0.0.1:0"}
DURABLE = "there:durable"


@pytest.fixture(params=["embedded", "kafka"])
def realm(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    if request.param == "embedded":
        return embedded_realm(tmp_path)
    return kafka_realm(request.getfixturevalue("kafka_bootstrap"), f"t{uuid.uuid4().hex[:8]}")


@pytest.fixture
def gateway(realm: dict[str, Any], tmp_path: Path) -> Iterator[GatewayProcess]:
    gateway = start_gateway(tmp_path, realm, admin=ADMIN)
    yield gateway
    gateway.stop()


def log_of(gateway: GatewayProcess) -> Log:
    realm = gateway.settings["realm"]
    if realm["kind"] == "embedded":
        return open_embedded(Path(realm["path"]))
    return open_kafka(realm["bootstrap"], {})


def ran(gateway: GatewayProcess, *words: str) -> tuple[int, str, str]:
    return realmgate(*words, "--config", str(gateway.config_path))


def shown(gateway: GatewayProcess, *words: str) -> Any:
    code, out, _ = ran(gateway, *words, "--json")
    assert code == 0
    return json.loads(out)


def furnished(gateway: GatewayProcess, partitions: int) -> None:
    """Two queues and a channel with a durable, three events in each; the topics of one queue and of the channel go."""
    for name, kind in (("orders", "queue"), ("others", "queue"), ("prices", "channel")):
        gateway.command("node", "create", name, "--kind", kind, "--partitions", str(partitions))
    with Peer(gateway.port, container="there") as peer:
        peer.consumer(frames.source("prices", durable=2, expiry="never"), name="durable")
        for at, (name, kind) in enumerate((("orders", "queue"), ("others", "queue"), ("prices", "channel"))):
            peer.publisher(name, kind, handle=10 + at)
            peer.outcomes(len(peer.publish(*[MESSAGE] * 3, handle=10 + at)))
    log = log_of(gateway)
    log.control.delete_topics([node["topic"] for node in shown(gateway, "node", "list") if node["name"] != "others"])
    log.close()


@pytest.mark.parametrize("partitions", [1, 3])
def test_the_others_are_served_and_it_is_shown(gateway: GatewayProcess, partitions: int) -> None:
    furnished(gateway, partitions)
    nodes = {node["name"]: node for node in shown(gateway, "node", "list")}
    assert nodes["others"]["problem"] is None
    for name in ("orders", "prices"):
        assert nodes[name]["problem"]["kind"] == "topic-missing"
        assert "realmgate node delete" in nodes[name]["problem"]["remedy"]
        assert shown(gateway, "node", "show", name)["problem"] == nodes[name]["problem"]
    code, out, err = ran(gateway, "node", "list")
    assert (code, [line.split()[-1] for line in out.splitlines()]) == (0, ["STATE", "missing", "ok", "missing"])
    assert err.count("realmgate: warning: ") == 2
    assert ran(gateway, "node", "show", "orders")[0] == ran(gateway, "node", "show", "others")[0] == 0

    durables = {(row["node"], row["partition"]): row for row in shown(gateway, "durable", "list")}
    assert len(durables) == 3 * partitions
    assert sum(row["waiting"] for (node, _), row in durables.items() if node == "others") >= 3
    assert all(row["waiting"] is None for (node, _), row in durables.items() if node != "others")
    assert ran(gateway, "durable", "list")[0] == 0
    assert ran(gateway, "durable", "show", "prices", DURABLE)[0] == 0

    assert len(shown(gateway, "queue", "peek", "others")) == 3
    for command in (("peek", "orders"), ("purge", "orders", "--yes"), ("move", "orders", "--to", "others", "--yes")):
        code, _, err = ran(gateway, "queue", *command)
        assert code == 1
        assert "is not there: its events are gone: realmgate node delete" in err
    watch = Watch.of(gateway)
    watch.until(lambda: watch.metrics().get(("realmgate_problem", ("prices", "topic-missing"))) == 1)
    with Peer(gateway.port) as peer:
        peer.there("others", 3)


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("serving", [True, False])
def test_it_can_be_deleted_and_created_anew(gateway: GatewayProcess, partitions: int, serving: bool) -> None:
    furnished(gateway, partitions)
    if not serving:
        gateway.stop()
    for name in ("orders", "prices"):
        code, _, err = ran(gateway, "node", "delete", name, "--yes")
        assert code == 0, err
    assert [node["name"] for node in shown(gateway, "node", "list")] == ["others"]
    assert {row["node"] for row in shown(gateway, "durable", "list")} == {"others"}
    if not serving:
        gateway.start()
    gateway.command("node", "create", "orders", "--kind", "queue", "--partitions", str(partitions))
    with Peer(gateway.port) as peer:
        peer.stored("orders", *[MESSAGE] * 3)
        peer.there("orders", 3)
        peer.there("others", 3)


def test_a_durable_of_it_can_be_deleted(gateway: GatewayProcess) -> None:
    furnished(gateway, 3)
    code, out, _ = ran(gateway, "durable", "delete", "prices", DURABLE, "--yes")
    assert (code, "it is deleted" in out) == (0, True)
    assert {row["node"] for row in shown(gateway, "durable", "list")} == {"orders", "others"}


def test_a_topic_that_was_made_again_is_not_the_nodes(gateway: GatewayProcess) -> None:
    furnished(gateway, 1)
    log = log_of(gateway)
    log.control.create_topics(
        [TopicSpec(node["topic"]) for node in shown(gateway, "node", "list") if node["name"] == "orders"]
    )
    log.close()
    nodes = {node["name"]: node["problem"] for node in shown(gateway, "node", "list")}
    assert nodes["orders"]["kind"] == "topic-made-again"
    assert ran(gateway, "queue", "peek", "orders")[0] == 1
    watch = Watch.of(gateway)
    watch.until(lambda: ("realmgate_problem", ("orders", "topic-made-again")) in watch.metrics())
    code, _, err = ran(gateway, "node", "delete", "orders", "--yes")
    assert code == 0, err
