"""`realmgate import rabbitmq` reads what Debian's RabbitMQ exports, and a realm takes the nodes."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import yaml

from tests.kit.patience import HANG_S
from tests.kit.processes.gateway import REALMGATE
from tests.kit.processes.rabbitmq import RabbitMQ
from tests.kit.processes.toolchains import NEEDS_RABBITMQ

QUEUE = {"vhost": "/", "durable": True, "auto_delete": False}
GIVEN = {
    "queues": [
        QUEUE | {"name": "orders", "arguments": {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}},
        QUEUE | {"name": "limited", "arguments": {"x-queue-type": "quorum", "x-delivery-limit": 4}},
        QUEUE | {"name": "dead", "arguments": {}},
    ],
    "exchanges": [
        {"vhost": "/", "name": name, "type": kind, "durable": True, "auto_delete": False, "internal": False}
        | {"arguments": {}}
        for name, kind in (("news", "fanout"), ("routed", "topic"))
    ],
    "bindings": [
        {"vhost": "/", "source": "routed", "destination": "orders", "destination_type": "queue"}
        | {"routing_key": "shop.#", "arguments": {}}
    ],
}


@NEEDS_RABBITMQ
def test_what_rabbitmq_exports(tmp_path: Path) -> None:
    given, exported, nodes = tmp_path / "given.json", tmp_path / "definitions.json", tmp_path / "nodes.yaml"
    given.write_text(json.dumps(GIVEN))
    rabbitmq = RabbitMQ(tmp_path / "node")
    rabbitmq.start()
    try:
        rabbitmq.command("import_definitions", str(given))
        rabbitmq.command("add_user", "ann", "secret-word")
        rabbitmq.command("set_permissions", "ann", "^$", "^orders$", ".*")
        rabbitmq.command("set_policy", "ttl", "^orders", '{"message-ttl": 5000}', "--apply-to", "queues")
        rabbitmq.command("export_definitions", str(exported))
    finally:
        rabbitmq.stop()
    done = realmgate("import", "rabbitmq", str(exported), "--out", str(nodes))
    everything = ["durable", "manage", "peek", "publish", "subscribe", "temporary"]
    assert yaml.safe_load(nodes.read_text()) == [
        {
            "realm": {
                "acl": [
                    {"who": "user:ann", "allow": ["durable", "peek", "subscribe"]},
                    {"who": "user:guest", "allow": everything},
                ]
            }
        },
        {"name": "dead", "kind": "queue"},
        {"name": "limited", "kind": "queue", "attempts": 5},
        {"name": "news", "kind": "channel"},
        {"name": "orders", "kind": "queue", "ttl": "5000ms", "dead-letter": "dead"}
        | {"acl": [{"who": "user:ann", "allow": ["publish"]}]},
    ]
    for note in (
        "exchange routed (topic) to orders; there is no routing in a realm",
        "binding of routed to queue orders by shop.#; let producers of shop.# name orders",
        "exchange news is a fanout to nothing; it is made as a channel",
        "user ann: RabbitMQ's hash of the password is of no use for SCRAM",
    ):
        assert note in done.stderr, done.stderr
    config = tmp_path / "gateway.yaml"
    config.write_text("realm: {kind: embedded, path: realm}\n")
    assert "5 changes are made" in realmgate("node", "apply", str(nodes), "--config", str(config)).stdout


def realmgate(*words: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([REALMGATE, *words], capture_output=True, text=True, timeout=HANG_S, check=False)
    assert done.returncode == 0, done.stderr
    return done
