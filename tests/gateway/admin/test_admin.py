"""What an operator sees of a running gateway: health, metrics, and a standby's."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.kit.processes.admin_pages import Watch
from tests.kit.processes.broker import free_port
from tests.kit.processes.gateway import StartGateway, embedded_realm, make_gateway
from tests.kit.wire import frames
from tests.kit.wire.peer import Peer
from tests.kit.wire.reloading import BAD, MESSAGE, MODIFIED, Folder
from tests.kit.wire.transacting import CONTROL, Transacting

ENDED = "realmgate_transactions_ended_total"
ADMIN = {"listen": "http://127.0.0.1:0"}
PAGE = Path(__file__).parents[3] / "docs/how-to/watch-a-gateway.md"
ACCEPTED = frames.state("accepted")


@pytest.mark.parametrize("kind", ["embedded", "kafka"])
def test_what_happened_stands_in_the_metrics(new_gateway: StartGateway, kind: str) -> None:
    process = new_gateway(kind, admin=ADMIN, nodes={"create_on_attach": ["orders", "news"]})
    watch = Watch.of(process)
    before = watch.metrics()
    assert before["realmgate_ready", ()] == 1
    with Peer(process.port) as peer:
        peer.publisher("orders")
        peer.outcomes(len(peer.publish(*[MESSAGE] * 10)))
        peer.consumer("orders", credit=6)
        numbers = [seen.field(1) for seen in peer.receive(6)]
        peer.settle(numbers[2:], ACCEPTED)
        durable = ("queue", "orders", "0")

        def is_seen() -> bool:
            metrics = watch.metrics()
            return metrics.get(("realmgate_durable_hole_events", durable)) == 2 and (
                metrics.get(("realmgate_durable_waiting_events", durable)) == 4
            )

        watch.until(is_seen)
        metrics = watch.metrics()
        assert metrics["realmgate_deliveries_total", ("in", "orders", "accepted")] == 10
        assert metrics["realmgate_deliveries_total", ("out", "orders", "accepted")] == 4
        rules = {key: count for (name, key), count in metrics.items() if name == "realmgate_rule_decisions_total"}
        assert rules == {
            ("publish-mixed", "publish"): 10,
            ("stored-accepted", "published"): 10,
            ("accepted-queue-acknowledges", "settle"): 4,
            ("done-as-asked", "settled"): 4,
        }
        assert metrics["realmgate_durable_unsettled_events", durable] == 2
        assert metrics["realmgate_durable_consumers", durable] == 1
        assert metrics["realmgate_durable_settled_ranges", durable] == 1
        assert metrics["realmgate_unsettled_deliveries", ()] == 2
        assert metrics["realmgate_connections", ()] == 1
        assert metrics["realmgate_links", ()] == 2
        assert metrics["realmgate_credit_granted", ()] > 0
        assert metrics["realmgate_accept_seconds_count", ()] == 10
        assert 0 < metrics["realmgate_accept_seconds_sum", ()] < 600
        assert metrics["realmgate_settle_seconds_count", ()] == 4
        assert metrics["realmgate_settle_seconds_bucket", ("+Inf",)] == 4
        assert metrics["realmgate_journal_transaction_seconds_count", ()] >= 1
        assert metrics["realmgate_journal_transaction_seconds_bucket", ("+Inf",)] >= 1
        assert metrics["realmgate_evidence_append_seconds_count", ()] >= 1
        assert metrics["realmgate_publish_append_seconds_count", ()] >= 1
        assert 0 < metrics["realmgate_publish_append_seconds_sum", ()] < 60
        assert metrics["realmgate_evidence_failed_total", ()] == 0
        assert metrics["process_resident_memory_bytes", ()] > 1e7
        peer.send(frames.attach_sender("nowhere", 7, "to-nowhere"))
        assert peer.refused() == "amqp:not-found"
        refused = ("fatal", "", "amqp:not-found", "", "attach.refuse-an-unknown-node")
        assert watch.metrics()["realmgate_errors_total", refused] == 1
    watch.until_zero("realmgate_connections")
    assert watch.metrics()["realmgate_unsettled_deliveries", ()] == 0


def test_every_metric_is_documented_and_every_documented_one_is_there(new_gateway: StartGateway) -> None:
    process = new_gateway("embedded", admin=ADMIN)
    with Peer(process.port) as peer:
        peer.publisher("orders")
        peer.outcomes(len(peer.publish(MESSAGE)))
        peer.consumer("orders", credit=1)
        peer.receive(1)
        watch = Watch.of(process)
        watch.until(lambda: ("realmgate_durable_waiting_events", ("queue", "orders", "0")) in watch.metrics())
        _, _, body = watch.ask("/metrics")
    there = set(re.findall(r"^# TYPE (realmgate_\w+) ", body.decode(), re.MULTILINE))
    table = PAGE.read_text().split("\n## Alerts")[0]
    names = set(re.findall(r"`(realmgate_\w+)`", table)) - {"realmgate_waiting_info"}
    assert there == names


def test_refused_tables_are_shown_and_the_gateway_stays_ready(new_gateway: StartGateway, tmp_path: Path) -> None:
    folder = Folder(tmp_path / "ours")
    process = new_gateway("embedded", admin=ADMIN, mappings={"dir": str(folder.directory)})
    watch = Watch.of(process)
    healthy = watch.health()
    assert (healthy["status"], healthy["state"], healthy["warnings"]) == (200, "ready", [])
    folder.write(BAD)
    watch.until(lambda: watch.health()["reload"]["refused"] == 1)
    shown = watch.health()
    assert (shown["status"], shown["state"]) == (200, "degraded")
    [problem] = shown["reload"]["problems"]
    assert re.match(rf"{folder.directory}/tables/published.yaml:\d+:\d+: settle cannot be maybe", problem)
    assert shown["tables"] == healthy["tables"]
    assert [(entry["kind"], entry["detail"]) for entry in shown["problems"]] == [("tables-refused", problem)]
    metrics = watch.metrics()
    assert (metrics["realmgate_ready", ()], metrics["realmgate_problem", ("", "tables-refused")]) == (1, 1)
    assert metrics["realmgate_reloads_total", ("refused",)] == 1
    assert metrics["realmgate_reload_problems", ()] == 1
    assert metrics["realmgate_reload_last_successful", ()] == 0
    assert process.log().count("these tables are not used") == 1
    folder.write(MODIFIED)
    watch.until(lambda: watch.health()["reload"]["done"] == 1)
    shown = watch.health()
    assert (shown["state"], shown["reload"]["problems"], shown["problems"]) == ("ready", [], [])
    assert shown["tables"]["digest"] != healthy["tables"]["digest"]
    metrics = watch.metrics()
    assert metrics["realmgate_reload_last_successful", ()] == 1
    assert metrics["realmgate_reload_last_success_timestamp_seconds", ()] * 1e6 == shown["reload"]["last_done_us"]
    assert ("realmgate_info", ("extended", "embedded", shown["run"], shown["tables"]["digest"])) in metrics


def test_a_standby_says_whom_it_waits_for(tmp_path: Path) -> None:
    realm = embedded_realm(tmp_path)
    first, second = (make_gateway(tmp_path / name, realm, admin=ADMIN) for name in ("first", "second"))
    second.port = free_port()
    try:
        first.start()
        run = Watch.of(first).health()["run"]
        second.launch()
        watch = Watch.of(second)
        watch.until(lambda: watch.health()["state"] == "standby")
        shown = watch.health()
        assert shown["status"] == 503
        assert f"gateway {run} " in shown["detail"]
        assert (watch.ask("/livez")[0], watch.ask("/readyz")[0]) == (200, 200)
        [answer] = json.loads(watch.ask("/api/links")[2])["gateways"]
        assert (answer["run"], answer["state"], answer["links"]) == (shown["run"], "standby", [])
        metrics = watch.metrics()
        assert metrics["realmgate_ready", ()] == 0
        assert metrics["realmgate_waiting_info", (shown["run"], "standby")] == 1
        first.kill()
        second.await_ready()
        assert (watch.health()["status"], watch.health()["state"]) == (200, "ready")
        assert second.stop() == 0
    finally:
        first.kill()
        second.kill()


def test_an_address_in_use_is_named_and_nothing_starts(new_gateway: StartGateway, tmp_path: Path) -> None:
    url = Watch.of(new_gateway("embedded", admin=ADMIN)).url
    second = make_gateway(tmp_path / "second", embedded_realm(tmp_path / "second"), admin={"listen": url})
    second.launch()
    assert second.process is not None
    second.process.wait(90)  # it has to start first, on whatever machine
    assert second.await_exit() == 2
    line = (
        f"gateway.yaml:1: {url}: admin.listen: Address already in use; stop what listens at port {url.split(':')[-1]}"
    )
    assert line in second.log()


def test_every_store_of_a_spread_node_is_shown_by_itself(new_gateway: StartGateway) -> None:
    process = new_gateway("embedded", admin=ADMIN)
    process.command("node", "create", "wide", "--kind", "queue", "--partitions", "3", "--capacity-events", "1000")
    watch = Watch.of(process)
    with Peer(process.port) as peer:
        peer.publisher("wide")
        peer.outcomes(len(peer.publish(*[MESSAGE] * 30)))
        peer.consumer("wide", credit=9)
        peer.receive(9)
        watch.until(lambda: watch.metrics()["realmgate_stores_counting", ()] == 0)
        metrics = watch.metrics()
        unsettled = [metrics["realmgate_durable_unsettled_events", ("queue", "wide", str(part))] for part in range(3)]
        assert sum(unsettled) == 9
        assert metrics["realmgate_unsettled_deliveries", ()] == 9
        events = [number for (name, _), number in metrics.items() if name == "realmgate_node_events"]
        assert sum(events) == 30


def test_how_transactions_ended_is_counted(new_gateway: StartGateway) -> None:
    process = new_gateway("embedded", admin=ADMIN, nodes={})
    process.command("node", "create", "orders")
    watch = Watch.of(process)

    def ended() -> dict[str, int]:
        counts = {key[0]: int(count) for (name, key), count in watch.metrics().items() if name == ENDED}
        return {end: count for end, count in counts.items() if count}

    assert ended() == {} and watch.metrics()[ENDED, ("committed",)] == 0, "there before the first one"
    with Transacting(process.port) as peer:
        peer.publisher("orders")
        begun = peer.begun()
        peer.promised(*peer.post(begun, MESSAGE))
        assert peer.discharge(begun) == "accepted"
        peer.discharge(peer.declare(), fail=True)
        assert ended() == {"committed": 1, "rolled-back": 1}
        assert watch.metrics()["realmgate_commit_seconds_count", ()] == 1, "a rollback is no commit"
        begun = peer.declare()
        peer.promised(*peer.post(begun, MESSAGE))
        process.command("node", "delete", "orders")
        peer.send(frames.discharge(peer.number(), begun, False, CONTROL))
        assert peer.until("disposition").state == "rejected:amqp:transaction:rollback"
        assert peer.declare()
    watch.until_zero("realmgate_transactions_open")
    assert ended() == {"committed": 1, "rolled-back": 1, "refused": 1, "abandoned": 1}
