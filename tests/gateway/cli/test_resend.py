"""`queue resend --to-origin`: each message is in exactly one place, also when the gateway or the command is killed;
what has no origin stays and is named. On both realms, with one partition and three."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import closing
from itertools import chain
from typing import Any

import pytest

from gateway.cli.dead_letters.peeked import described
from gateway.cli.dead_letters.wanted import wanted
from gateway.cli.durable import find
from gateway.config.settings import load_settings
from gateway.serve.open_log import open_log
from native_backend.nodes.durable import QUEUE
from tests.gateway.cli.dying_at import ASKED, PIECES, VARIABLE
from tests.kit.processes.gateway import GatewayProcess, StartGateway
from tests.kit.wire import frames
from tests.kit.wire.consumer_errors import given_back
from tests.kit.wire.peer import Peer

REALMS = pytest.mark.parametrize("kind", ["embedded", "kafka"])
PARTITIONS = pytest.mark.parametrize("partitions", [1, 3], ids="on-{}".format)
RESEND = ["queue", "resend", "dead", "--to-origin", "--yes", "--where", "amqp.dead_letter_cause = 'rejected'"]
COUNT = 900  # more than three pieces of chosen events
DYING = [sys.executable, "-m", "tests.gateway.cli.dying_at"]


def made(gateway: GatewayProcess, partitions: int) -> None:
    options = ("--partitions", str(partitions)) if partitions > 1 else ()
    gateway.command("node", "create", "dead", *options)
    for node in ("orders", "bills"):
        gateway.command("node", "create", node, "--dead-letter", "dead", *options)


def rejected(gateway: GatewayProcess, node: str, count: int, first: int) -> None:
    with Peer(gateway.port) as peer:
        peer.stored(node, *(frames.message(b"%06d" % (first + at)) for at in range(count)))
        peer.consumer(node, credit=count)
        peer.receive(count)
        peer.send(frames.disposition(0, count - 1, frames.state("rejected"), False))
        assert len(peer.outcomes(count)) == count  # what is settled at once has its end some time later
        peer.send(frames.detach(1))
        peer.expect("detach")


def bodies(gateway: GatewayProcess, node: str) -> list[str]:
    """As `queue peek` finds them."""
    settings = load_settings(gateway.config_path)
    stores = find(settings, node, QUEUE)
    with closing(open_log(settings)) as log:
        return sorted(described(event, 0)["body"] for event in wanted(log, stores, 0, ""))


def places(gateway: GatewayProcess) -> dict[str, list[str]]:
    return {node: bodies(gateway, node) for node in ("orders", "bills", "dead")}


def resent(gateway: GatewayProcess, *words: str) -> dict[str, Any]:
    return dict(json.loads(gateway.command("queue", "resend", "dead", "--to-origin", "--json", "--yes", *words)))


def numbers(begin: int, end: int) -> list[str]:
    return [f"{at:06d}" for at in range(begin, end)]


@REALMS
@PARTITIONS
def test_messages_go_back_to_the_nodes_that_they_came_from(
    new_gateway: StartGateway, kind: str, partitions: int
) -> None:
    gateway = new_gateway(kind)
    made(gateway, partitions)
    rejected(gateway, "orders", 20, 0)
    rejected(gateway, "bills", 10, 20)
    before = places(gateway)
    would = resent(gateway, "--dry-run")
    assert (would["dry_run"], would["sent"], would["stay"]) == (True, 30, 0)
    assert would["origins"] == [
        {"origin": "bills", "what": "sent", "count": 10},
        {"origin": "orders", "what": "sent", "count": 20},
    ]
    assert places(gateway) == before == {"orders": [], "bills": [], "dead": numbers(0, 30)}
    only = resent(gateway, "--where", "amqp.dead_letter_node = 'bills'")
    assert (only["sent"], only["origins"]) == (10, [{"origin": "bills", "what": "sent", "count": 10}])
    gateway.stop()
    assert resent(gateway)["sent"] == 20, "without a gateway"
    assert places(gateway) == {"orders": numbers(0, 20), "bills": numbers(20, 30), "dead": []}


def test_what_stays_is_named_and_counted(new_gateway: StartGateway) -> None:
    gateway = new_gateway("embedded")
    made(gateway, 1)
    gateway.command("node", "create", "old", "--dead-letter", "dead")
    gateway.command(
        "node", "create", "small", "--dead-letter", "dead", "--capacity-events", "3", "--honour-capacity", "true"
    )
    rejected(gateway, "old", 5, 0)
    rejected(gateway, "small", 2, 5)
    rejected(gateway, "orders", 4, 7)
    given_back(gateway, "bills", frames.state("accepted"))
    with Peer(gateway.port) as peer:
        peer.stored("small", *(frames.message(b"%d" % at) for at in range(2)))
        peer.stored("dead", frames.message(b"no letter"))
    gateway.command("node", "delete", "old", "--yes")
    words = gateway.command("queue", "resend", "dead", "--to-origin", "--yes").splitlines()
    assert [line.split(maxsplit=2) for line in words[:-1]] == [
        ["ORIGIN", "MESSAGES", "WHAT"],
        ["-", "1", "stay: they are no dead letters"],
        ["old", "5", "stay: the node was deleted, or created anew"],
        ["orders", "4", "sent back"],
        ["small", "1", "stay: the node is full"],
        ["small", "1", "sent back"],
    ]
    assert words[-1] == "queue dead: 5 messages are sent back, 7 stay"
    assert bodies(gateway, "dead") == sorted([*numbers(0, 5), "000006", "no letter"])
    assert bodies(gateway, "orders") == numbers(7, 11)
    output = gateway.command("queue", "resend", "dead", "--to-origin", "--dry-run")
    assert "old" in output and output.endswith("1 messages would be sent back, 6 stay\n")


@REALMS
@PARTITIONS
@pytest.mark.parametrize("point", PIECES)
def test_a_killed_gateway_leaves_each_message_in_one_place(
    new_gateway: StartGateway, kind: str, partitions: int, point: str
) -> None:
    gateway = new_gateway(kind)
    made(gateway, partitions)
    rejected(gateway, "orders", COUNT * 2 // 3, 0)
    rejected(gateway, "bills", COUNT // 3, COUNT * 2 // 3)
    gateway.stop()
    usual, gateway.program = gateway.program, DYING
    gateway.environment = {VARIABLE: f"{point}:3"}
    gateway.start()
    words = [*RESEND, "--config", str(gateway.config_path)]
    command = subprocess.Popen([*usual, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    assert gateway.await_exit() == -signal.SIGKILL
    command.kill()
    command.wait()
    gateway.program, gateway.environment = usual, {}
    gateway.start()
    by_node = places(gateway)
    assert sorted(chain.from_iterable(by_node.values())) == numbers(0, COUNT), "each is in one place"
    assert 0 < len(by_node["dead"]) < COUNT, "it was killed on its way"
    assert set(by_node["orders"]) <= set(numbers(0, COUNT * 2 // 3))
    assert resent(gateway)["sent"] == len(by_node["dead"])
    assert places(gateway) == {
        "orders": numbers(0, COUNT * 2 // 3),
        "bills": numbers(COUNT * 2 // 3, COUNT),
        "dead": [],
    }


@REALMS
@PARTITIONS
@pytest.mark.parametrize("point", PIECES[:2])
def test_a_killed_command_without_a_gateway_leaves_each_message_in_one_place(
    new_gateway: StartGateway, kind: str, partitions: int, point: str
) -> None:
    gateway = new_gateway(kind)
    made(gateway, partitions)
    rejected(gateway, "orders", COUNT, 0)
    gateway.stop()
    assert killed(gateway, f"{point}:2") == -signal.SIGKILL
    by_node = places(gateway)
    assert sorted(chain.from_iterable(by_node.values())) == numbers(0, COUNT), "each is in one place"
    assert 0 < len(by_node["dead"]) <= COUNT
    gateway.start()
    assert resent(gateway)["sent"] == len(by_node["dead"])
    assert places(gateway) == {"orders": numbers(0, COUNT), "bills": [], "dead": []}


@REALMS
def test_a_command_that_is_killed_when_it_has_asked_is_carried_out(new_gateway: StartGateway, kind: str) -> None:
    gateway = new_gateway(kind)
    made(gateway, 1)
    rejected(gateway, "orders", COUNT, 0)
    assert killed(gateway, f"{ASKED}:0") == -signal.SIGKILL
    gateway.await_log("resend of 'dead'")
    assert places(gateway) == {"orders": numbers(0, COUNT), "bills": [], "dead": []}


def killed(gateway: GatewayProcess, point: str) -> int:
    """The exit code of a resend that dies there."""
    words = [*RESEND, "--config", str(gateway.config_path)]
    environment = {**os.environ, VARIABLE: point}
    return subprocess.run([*DYING, *words], env=environment, capture_output=True, check=False).returncode
