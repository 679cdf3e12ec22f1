"""What is wrong with a gateway stands in /health and in the metrics while it is so, with what to do, and no longer.

Each thing is really broken here, on the embedded realm, and mended."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from native_backend.journal.journal import journal_topic
from native_backend.log.open import open_embedded
from native_backend.log.port import Log
from native_backend.nodes.metadata_writer import realm_metadata
from tests.gateway.admin.shown_problems import ADMIN, is_shown, is_well, problem
from tests.kit.processes.admin_pages import Watch
from tests.kit.processes.gateway import GatewayProcess, embedded_realm, make_gateway, start_gateway
from tests.kit.processes.small_disk import small_disk
from tests.kit.realm.worlds import SqliteWorld
from tests.kit.wire import frames
from tests.kit.wire.logins import write_users
from tests.kit.wire.peer import Peer
from tests.kit.wire.reloading import MESSAGE


def test_a_full_disk(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        gateway = make_gateway(tmp_path, embedded_realm(tmp_path / "disk"), admin=ADMIN)
        gateway.environment = disk.environment
        gateway.start()
        try:
            watch = Watch.of(gateway)
            with Peer(gateway.port) as peer:
                peer.publisher("orders")
                assert set(peer.outcomes(len(peer.publish(MESSAGE))).values()) == {"accepted"}
                watch.until(lambda: is_well(watch))
                disk.fill()
                assert "accepted" not in peer.outcomes(len(peer.publish(*[MESSAGE] * 50))).values()
                watch.until(lambda: is_shown(watch, "cannot-write"))
                shown = watch.health()
                assert (shown["status"], shown["state"]) == (503, "cannot-write")
                assert (watch.ask("/readyz")[0], watch.ask("/livez")[0]) == (503, 200)
                sentence = problem(watch, "cannot-write")
                assert sentence is not None and "full" in sentence["detail"]
                assert sentence["remedy"].startswith(f"make room on the disk of {tmp_path / 'disk'}")
                assert watch.metrics()["realmgate_ready", ()] == 0
                watch.until(lambda: is_shown(watch, "evidence-waits"))
                disk.clear()
                watch.until(lambda: is_well(watch))  # by itself: nothing is published meanwhile
                metrics = watch.metrics()
                assert metrics["realmgate_ready", ()] == 1
                refused = {
                    labels: number for (name, labels), number in metrics.items() if name == "realmgate_errors_total"
                }
                assert [(labels[0], labels[1], labels[3]) for labels in refused] == [
                    ("transient", "SQLITE_FULL", "orders")
                ]
                assert [*refused.values()] == [50]
                assert set(peer.outcomes(len(peer.publish(MESSAGE))).values()) == {"accepted"}
        finally:
            gateway.stop()


def without_topic(gateway: GatewayProcess, name: str) -> Log:
    """The realm's file beside the gateway, without the topic of that node."""
    log = open_embedded(Path(gateway.settings["realm"]["path"]))
    log.control.delete_topics([realm_metadata(log, "um").nodes[name].topic])
    return log


def test_a_node_without_its_topic(tmp_path: Path) -> None:
    gateway = start_gateway(tmp_path, embedded_realm(tmp_path), admin=ADMIN)
    try:
        for name in ("orders", "prices"):
            gateway.command("node", "create", name, "--kind", "queue", "--partitions", "3")
        watch = Watch.of(gateway)
        watch.until(lambda: is_well(watch))
        without_topic(gateway, "orders").close()
        watch.until(lambda: is_shown(watch, "topic-missing", "orders"))
        shown = watch.health()
        assert (shown["status"], shown["state"]) == (200, "degraded"), "the other node is served"
        assert [entry["about"] for entry in shown["problems"]] == ["orders"]
        assert "realmgate node delete" in shown["problems"][0]["remedy"]
        [answer] = json.loads(watch.ask("/api/nodes")[2])["gateways"]
        assert {row["node"]: row["problem"] for row in answer["nodes"]} == {"orders": "topic-missing", "prices": None}
        with Peer(gateway.port) as peer:
            peer.stored("prices", MESSAGE)
        gateway.command("node", "delete", "orders", "--yes")
        watch.until(lambda: is_well(watch))
        gateway.command("node", "create", "orders", "--kind", "queue")
        with Peer(gateway.port) as peer:
            peer.stored("orders", MESSAGE)
    finally:
        gateway.stop()


def test_users_that_are_refused(tmp_path: Path) -> None:
    write_users(tmp_path / "users.yaml", ann=[])
    security = {"sasl": ["SCRAM-SHA-256"], "users": "users.yaml"}
    gateway = start_gateway(tmp_path, embedded_realm(tmp_path), admin=ADMIN, security=security)
    try:
        watch = Watch.of(gateway)
        watch.until(lambda: is_well(watch))
        (tmp_path / "users.yaml").write_text("users: {ann: {groops: []}}\n")
        watch.until(lambda: is_shown(watch, "users-refused"))
        shown = watch.health()
        assert (shown["status"], shown["state"]) == (200, "degraded")
        assert "users.yaml:1" in shown["problems"][0]["detail"]
        write_users(tmp_path / "users.yaml", ann=[], ben=[])
        watch.until(lambda: is_well(watch))
    finally:
        gateway.stop()


def test_an_alarm(tmp_path: Path) -> None:
    """Events that went before they had ended: it cannot be mended, and a new run does not know of it."""
    gateway = start_gateway(tmp_path, embedded_realm(tmp_path), admin=ADMIN)
    try:
        with Peer(gateway.port) as peer:
            peer.stored("orders", *[MESSAGE] * 20)
        gateway.stop()
        log = open_embedded(tmp_path / "realm")
        node = realm_metadata(log, "um").nodes["orders"]
        log.control.trim(node.topic, 0, 17)
        log.close()
        gateway.start()
        watch = Watch.of(gateway)
        with Peer(gateway.port) as peer:
            peer.consumer("orders", credit=10)
            peer.receive(3)
            watch.until(lambda: is_shown(watch, "alarm", "events lost by retention"))
        shown = watch.health()
        assert (shown["status"], shown["state"]) == (200, "degraded")
        assert shown["problems"][0]["detail"] == "17 in this run"
        assert "retention.ms=-1" in shown["problems"][0]["remedy"]
        gateway.restart()
        watch = Watch.of(gateway)
        watch.until(lambda: is_well(watch))
    finally:
        gateway.stop()


@pytest.mark.parametrize(
    "alarm", ["events lost by truncation", "journal records lost by truncation", "journal records lost by retention"]
)
def test_a_topic_that_became_shorter(tmp_path: Path, alarm: str) -> None:
    """As after a restored backup. What is stored afterwards is given, though its EIDs were acknowledged before."""
    gateway = start_gateway(tmp_path, embedded_realm(tmp_path), admin=ADMIN)
    try:
        with Peer(gateway.port) as peer:
            peer.publisher("orders")
            peer.consumer("orders", credit=100)
            for _ in range(20):
                peer.stored("orders", MESSAGE)
                peer.settle([peer.receive(1)[0].field(1)], frames.state("accepted"), settled=False)
                assert set(peer.outcomes(1).values()) == {"accepted"}
        gateway.kill() if alarm.endswith("retention") else gateway.stop()
        world = SqliteWorld(tmp_path / "realm")
        log = world.open()
        node = realm_metadata(log, "um").nodes["orders"]
        if alarm.endswith("retention"):
            log.control.trim(journal_topic("um"), 0, log.control.bounds(journal_topic("um"), 0)[1])
        world.close()
        place, end = {"events": ((node.topic, 0), 10), "journal": ((journal_topic("um"), 0), 2)}[alarm.split()[0]]
        if alarm.endswith("truncation"):
            world.cut({place: end})
        gateway.start()
        watch = Watch.of(gateway)
        with Peer(gateway.port) as peer:
            watch.until(lambda: is_shown(watch, "alarm", alarm))
            peer.consumer("orders", credit=100)
            peer.stored("orders", *[MESSAGE] * 15)
            peer.receive(15)
        shown = watch.health()
        assert (shown["status"], shown["state"]) == (200, "degraded")
        assert [entry["about"] for entry in shown["problems"]] == [alarm]
        assert len(shown["problems"][0]["remedy"]) > 50
        gateway.restart()
        watch = Watch.of(gateway)
        watch.until(lambda: is_well(watch))
    finally:
        gateway.stop()
