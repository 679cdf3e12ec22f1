"""cli-proton-python, a program that others wrote to try brokers with, through a real gateway process, on both realms:
messages with their properties, browsing, selecting, giving back, transactions."""

from __future__ import annotations

from typing import Any

from tests.interop.clients import cli_proton, waiting
from tests.kit.processes.gateway import GatewayProcess


def contents(messages: list[dict[str, Any]]) -> list[str]:
    return [message["content"] for message in messages]


def test_cli_proton_sends_browses_selects_and_receives(gateway: GatewayProcess) -> None:
    url = ["--broker-url", f"{gateway.address}/cli"]
    for colour in ("red", "blue"):
        headers = ["--msg-durable", "yes", "--msg-priority", "7", "--msg-correlation-id", colour]
        cli_proton("sender", *url, "--count", "3", "--msg-content", f"{colour}-%d", "-P", f"colour={colour}", *headers)
    everything = [f"{colour}-{number}" for colour in ("red", "blue") for number in range(3)]
    browsed = cli_proton("receiver", *url, "--count", "6", "--recv-browse")
    assert contents(browsed) == everything
    assert [(message["durable"], message["priority"], message["correlation-id"]) for message in browsed[2:4]] == [
        (True, 7, "red"),
        (True, 7, "blue"),
    ]
    blue = cli_proton("receiver", *url, "--count", "2", "--recv-selector", "colour = 'blue'")
    assert contents(blue) == ["blue-0", "blue-1"]
    given_back = cli_proton("receiver", *url, "--count", "1", "--action", "release", "--reactor-prefetch", "1")
    assert contents(given_back) == ["red-0"]
    # The first has gone without waiting until what it released is there again: any of the four may be given first.
    assert sorted(contents(cli_proton("receiver", *url, "--count", "4"))) == ["blue-2", "red-0", "red-1", "red-2"]


def test_cli_proton_sends_and_receives_under_transactions(gateway: GatewayProcess) -> None:
    """Two habits of the receiver's: it asks for --count at once, so that a transaction must be as large; and it accepts
    outside of the transaction what it has just accepted inside, unless it is told not to (noack)."""
    url = ["--broker-url", f"{gateway.address}/cli-transactions", "--count", "10"]
    send = ["sender", *url, "--tx-size", "5", "--msg-content", "message %d"]
    receive = ["receiver", *url, "--tx-size", "10", "--action", "noack"]
    cli_proton(*send, "--tx-action", "rollback")
    cli_proton(*send)
    sent = [f"message {number}" for number in range(10)]
    assert sorted(contents(cli_proton(*receive, "--tx-action", "rollback"))) == sent
    assert sorted(contents(cli_proton(*receive))) == sent, "what was rolled back came again"
    assert waiting(gateway, "cli-transactions") == 0
