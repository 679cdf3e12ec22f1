"""A C client on Qpid Proton through a real gateway process, on both realms: a hundred thousand, each once."""

from __future__ import annotations

from tests.interop.clients import load
from tests.kit.processes.gateway import GatewayProcess

COUNT = 100_000


def test_the_load_client_moves_100_000(gateway: GatewayProcess) -> None:
    under_way = ("--count", str(COUNT), "--in-flight", "1000")
    assert load("send", gateway.address, "load", *under_way)["accepted"] == COUNT
    got = load("receive", gateway.address, "load", *under_way, "--settle")
    assert (got["distinct"], got["again"], got["foreign"]) == (COUNT, 0, 0)
