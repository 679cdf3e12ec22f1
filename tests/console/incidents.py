"""What goes wrong at one gateway, all of it at once: one incident for each panel of the overview."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import proton
import pytest

from tests.kit.processes.gateway import GatewayProcess, embedded_realm, start_gateway
from tests.kit.wire import frames
from tests.kit.wire.consumer_errors import BAD, given_back
from tests.kit.wire.logins import PASSWORD, connect, write_users
from tests.kit.wire.peer import Peer
from tests.kit.wire.reloading import MESSAGE
from tests.kit.wire.transacting import Transacting

PANELS: Final = {
    "Errors": ("amqp:not-found", "ordres"),
    "Transient": ("capacity-reached",),
    "Outcomes": ("small in",),
    "Links": ("pricing-cache-1", "prices"),
    "Acknowledgement state": ("prices queue 2 2 1",),
    "Capacity": ("small", "100 %"),
    "Transactions": ("open 1",),
    "Reconciliation": ("not clean", "4 \u00d7 lost write (P1)."),
    "Rules": ("published. capacity-reached-rejected",),
    "Dead letters": ("bills rejected",),
    "Denials": ("ann log in", "anonymous publish secret"),
}
"""Each panel below the verdict, and what its incident says there."""


def start_troubled(directory: Path) -> GatewayProcess:
    write_users(directory / "users.yaml", ann=[])
    security = {"sasl": ["ANONYMOUS", "PLAIN"], "users": "users.yaml", "plain_without_tls": True}
    admin = {"listen": "http://127.0.0.1:0"}
    limits = {"history_interval_s": 1, "idle_timeout_ms": 0}  # its peers say nothing while a browser looks
    settings = {"security": security, "admin": admin, "nodes": {}, "limits": limits}
    gateway = start_gateway(directory, embedded_realm(directory), **settings)
    for node in ("dead", "orders", "prices", "secret"):
        gateway.command("node", "create", node)
    gateway.command("node", "create", "bills", "--dead-letter", "dead")
    gateway.command("node", "create", "small", "--capacity-events", "2", "--honour-capacity", "true")
    gateway.command("acl", "grant", "user:ann", "publish", "--node", "secret")
    return gateway


def misspell(gateway: GatewayProcess, node: str) -> None:
    with Peer(gateway.port, container="shop-batch-1") as peer:
        peer.send(frames.attach_sender(node, 7, f"to-{node}"))
        assert peer.refused() == "amqp:not-found"


def write_report(directory: Path) -> None:
    """Of a reconciliation that was not clean."""
    manifest: dict[str, Any] = {
        "verdict": "not clean", "sentence": "4 \u00d7 lost write (P1).", "complete": True, "clean": False,
        "window": {"name": "all"}, "runs": [{}], "balance": {"difference": 4},
        "classes": [{"class": "P1", "severity": "critical", "count": 4, "nodes": ["orders"]}],
    }  # fmt: skip
    directory.mkdir(parents=True)
    (directory / "manifest.json").write_text(json.dumps(manifest))
    (directory / "index.html").write_text("<style>b{}</style><script>alert(1)</script>the report itself")


@contextmanager
def incidents(gateway: GatewayProcess) -> Iterator[None]:
    """They last inside: a link that holds, a hole, an open transaction. The others stay."""
    misspell(gateway, "ordres")
    with pytest.raises(proton.ConnectionException):
        connect(gateway, f"{PASSWORD}?", "PLAIN", user="ann")
    with Peer(gateway.port, container="intern-1") as peer:
        peer.send(frames.attach_sender("secret", 7, "to-secret"))
        assert peer.refused() == "amqp:unauthorized-access"
    given_back(gateway, "bills", BAD, frames.state("rejected"))
    with (
        Peer(gateway.port, container="erp-export-1") as exporter,
        Peer(gateway.port, container="pricing-cache-1") as cache,
        Transacting(gateway.port, container="billing-1") as billing,
    ):
        exporter.publisher("small")
        exporter.outcomes(len(exporter.publish(*[MESSAGE] * 5)))
        cache.stored("prices", *[MESSAGE] * 3)
        cache.consumer("prices", credit=3)
        second = cache.receive(3)[1].field(1)
        cache.settle([second], frames.state("accepted"), settled=False)
        cache.expect("disposition")
        transaction = billing.begun()
        billing.publisher("orders")
        billing.post(transaction, MESSAGE)
        yield
