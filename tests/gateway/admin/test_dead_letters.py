"""Dead letters in /metrics: by the node that they were in and by cause, with names that cannot grow without end."""

from __future__ import annotations

from dataclasses import replace

import pytest

from native_backend.nodes.node import Node
from native_backend.state.dead_letter_counts import NODES_MAX, OTHER, TEMPORARY, DeadLetterCounts
from tests.kit.processes.admin_pages import Watch
from tests.kit.processes.gateway import StartGateway
from tests.kit.wire import frames
from tests.kit.wire.consumer_errors import given_back

FAILED = frames.state("modified", True, False)
REJECTED = frames.state("rejected")


def counted(watch: Watch) -> dict[tuple[str, ...], float]:
    """By cause and node."""
    metrics = watch.metrics().items()
    return {labels: number for (name, labels), number in metrics if name == "realmgate_dead_letters_total"}


@pytest.mark.parametrize("kind", ["embedded", "kafka"])
def test_dead_letters_are_counted_by_node_and_cause(new_gateway: StartGateway, kind: str) -> None:
    gateway = new_gateway(kind, admin={"listen": "http://127.0.0.1:0"})
    watch = Watch.of(gateway)
    gateway.command("node", "create", "dead", "--partitions", "3")
    for node in ("orders", "bills"):
        gateway.command("node", "create", node, "--dead-letter", "dead", "--attempts", "1", "--partitions", "3")
    gateway.command("node", "create", "plain")
    assert counted(watch) == {}
    given_back(gateway, "orders", REJECTED, REJECTED, FAILED, frames.state("accepted"))
    given_back(gateway, "bills", REJECTED)
    given_back(gateway, "plain", REJECTED)
    assert counted(watch) == {
        ("rejected", "orders"): 2,
        ("modified-failed", "orders"): 1,
        ("rejected", "bills"): 1,
    }, "what is kept nowhere is no dead letter"


def test_names_beyond_the_bound_are_one() -> None:
    counts = DeadLetterCounts()
    node = Node("n", "queue", "um.node.n", bytes(16), 1)
    for number in range(NODES_MAX + 5):
        counts.add(replace(node, name=f"n{number}"), "rejected", 2)
    counts.add(replace(node, name="n0"), "expired", 1)
    counts.add(replace(node, name="made", temporary=True), "rejected", 3)
    assert len(counts.counts) == NODES_MAX + 3
    assert counts.counts[OTHER, "rejected"] == 10
    assert counts.counts["n0", "expired"] == 1
    assert counts.counts[TEMPORARY, "rejected"] == 3
