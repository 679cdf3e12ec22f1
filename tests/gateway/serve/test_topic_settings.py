"""Settings of topics on a real Kafka that delete or may lose what is stored: /health names them, or nothing starts."""

from __future__ import annotations

from contextlib import closing

import pytest
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient

from tests.kit.processes.admin_pages import Watch
from tests.kit.processes.gateway import GatewayProcess, StartGateway


def alter(gateway: GatewayProcess, topic: str, setting: str, value: str) -> None:
    realm = gateway.settings["realm"]
    with closing(KafkaAdminClient(bootstrap_servers=realm["bootstrap"])) as admin:
        admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, f"{realm['prefix']}.{topic}", {setting: value})])


def shown(watch: Watch) -> dict[tuple[str, str], str]:
    return {(problem["kind"], problem["about"]): problem["detail"] for problem in watch.health()["problems"]}


def test_they_are_named_or_stop_the_start(new_gateway: StartGateway) -> None:
    gateway = new_gateway("kafka", admin={"listen": "http://127.0.0.1:0"})
    gateway.command("node", "create", "orders")
    watch = Watch.of(gateway)
    assert watch.health()["state"] == "ready"
    gateway.stop()
    alter(gateway, "node.orders", "retention.ms", "60000")
    alter(gateway, "outcomes", "unclean.leader.election.enable", "true")
    gateway.start()
    watch = Watch.of(gateway)
    watch.until(lambda: {("topic-deletes", "orders"), ("topic-risks", "")} == {*shown(watch)})
    assert "retention.ms=-1" in shown(watch)["topic-deletes", "orders"]
    assert watch.health()["state"] == "degraded"
    gateway.stop()
    alter(gateway, "journal", "cleanup.policy", "compact")
    gateway.launch()
    assert gateway.await_exit() == 2
    assert "journal: cleanup.policy is compact, not delete: kafka-configs --alter" in gateway.log()


@pytest.mark.timeout(300)
def test_what_is_set_back_is_over_within_a_minute(new_gateway: StartGateway) -> None:
    gateway = new_gateway("kafka", admin={"listen": "http://127.0.0.1:0"})
    alter(gateway, "journal", "retention.ms", "60000")
    watch = Watch.of(gateway)
    watch.until(lambda: ("topic-deletes", "") in shown(watch))
    alter(gateway, "journal", "retention.ms", "-1")
    watch.until(lambda: not shown(watch))
