"""`realmgate drain` with a real Artemis: 100,000 messages and kill -9 in the middle; and the way back."""

from __future__ import annotations

import json
import subprocess
from functools import partial
from pathlib import Path

import pytest
from proton import Message

from tests.kit.messages.queues import fill, taken
from tests.kit.patience import HANG_S, until
from tests.kit.processes.artemis import Artemis
from tests.kit.processes.gateway import REALMGATE, GatewayProcess, StartGateway

COUNT = 100_000


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("realm", ["embedded", "kafka"])
def test_a_hundred_thousand_messages_and_two_kills(new_gateway: StartGateway, artemis: Artemis, realm: str) -> None:
    gateway, queue = new_gateway(realm), f"orders-{realm}"
    messages = [
        bytes(Message(body=f"order {n}", id=f"id-{n}", properties={"n": n}, durable=True).encode())
        for n in range(COUNT)
    ]
    fill(artemis.address, queue, messages)
    command: list[str | Path] = [
        REALMGATE,
        "drain",
        f"amqp://{artemis.address}",
        queue,
        "--config",
        gateway.config_path,
        "--json",
    ]
    for least in (COUNT // 4, COUNT // 2):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        until(partial(holds, gateway, queue, least), f"{least} messages")
        process.kill()
        process.wait()
    before = stored(gateway, queue)
    assert before < COUNT, "the kill was in the middle"
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    document = json.loads(done.stdout)
    assert document["stored_in_all_runs"] == COUNT and document["stored"] == COUNT - before
    assert document["doubtful"] == document["refused"] == 0 and document["differences"] == []
    assert document["counted"] == {
        "source_before": document["stored"] + document["known"],
        "source_after": 0,
        "realm_before": before,
        "realm_after": COUNT,
    }
    assert taken(gateway.address, queue) == messages, "each once, in order, every octet"


def stored(gateway: GatewayProcess, queue: str) -> int:
    nodes = json.loads(gateway.command("node", "list", "--json"))
    return sum(node["messages"] or 0 for node in nodes if node["name"] == queue)


def holds(gateway: GatewayProcess, queue: str, least: int) -> bool:
    return stored(gateway, queue) >= least


def test_the_way_back(new_gateway: StartGateway, artemis: Artemis) -> None:
    gateway = new_gateway("embedded")
    messages = [bytes(Message(body=f"{n}", id=f"id-{n}", durable=True).encode()) for n in range(3000)]
    fill(gateway.address, "back", messages)
    command: list[str | Path] = [
        REALMGATE,
        "drain",
        f"amqp://{gateway.address}",
        "back",
        "--url",
        f"amqp://{artemis.address}",
        "--json",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["counted"]["realm_after"] == 3000, "Artemis counts them"
    assert taken(artemis.address, "back") == messages
    assert taken(gateway.address, "back") == []
