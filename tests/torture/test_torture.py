"""Short runs in which every guarantee holds, on each realm; long ones are recorded in bench/results/."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.kit.processes.broker import Broker, start_cluster_in
from tests.kit.processes.networks import Network
from tests.kit.processes.toolchains import NEEDS_NAMESPACES
from tests.torture.crash_points import POINTS, Point
from tests.torture.run import Figures, Run, scratch
from tests.torture.system.deployment import NODES
from tests.torture.system.nemesis import IN_FLIGHT
from tests.torture.system.proxy import Proxy, broker_behind_proxy

STORES = 2 + sum(int(node.get("partitions", 0)) + int(node.get("priority-levels", 0)) for node in NODES)


@pytest.fixture
def kafka(tmp_path: Path) -> Iterator[tuple[Broker, Proxy]]:
    broker, proxy = broker_behind_proxy(tmp_path / "kafka")
    yield broker, proxy
    broker.stop()
    proxy.close()


def torture(
    directory: Path,
    faults: list[str | Point],
    seed: int,
    brokers: Sequence[Broker] = (),
    proxy: Proxy | None = None,
    network: Network | None = None,
    ask_spark: bool = False,
) -> Figures:
    deployment = scratch(directory / "deployment", seed, brokers, proxy, network)
    try:
        figures = Run(deployment, seed).run(faults, ask_spark=ask_spark)
    finally:
        deployment.close()
    assert not figures.violations, "\n".join([figures.line(), *map(str, figures.violations[:10])])
    assert figures.least_in_flight >= IN_FLIGHT
    assert figures.accepted >= IN_FLIGHT
    assert figures.ended >= IN_FLIGHT
    assert figures.transactions >= 3
    assert figures.stores == STORES
    return figures


def point(name: str) -> Point:
    return next(point for point in POINTS if point.name == name)


@pytest.mark.timeout(900)
def test_embedded(tmp_path: Path) -> None:
    """Spark finds no anomaly in it either, no hole where the disk was full, and nothing in times that went back."""
    faults: list[str | Point] = [
        "kill gateway",
        point("commit, completion"),
        "fill disk",
        "reload",
        "jump clock",
        point("journal, settle"),
        point("unit, answer"),
        "jump clock",
        "cut",
    ]
    figures = torture(tmp_path, faults, seed=11, ask_spark=True)
    assert figures.kills == 4
    assert figures.points == {"commit, completion": 1, "journal, settle": 1, "unit, answer": 1}


@pytest.mark.timeout(900)
def test_kafka(tmp_path: Path, kafka: tuple[Broker, Proxy]) -> None:
    broker, proxy = kafka
    faults: list[str | Point] = [point("commit, answer"), "jump clock", "cut kafka", "jump clock", "kill kafka"]
    figures = torture(tmp_path, faults, 12, [broker], proxy)
    assert figures.kills == 2


@NEEDS_NAMESPACES
@pytest.mark.timeout(1800)
def test_cluster(tmp_path: Path) -> None:
    network = Network(3)
    brokers = start_cluster_in(network, tmp_path / "kafka")
    try:
        torture(tmp_path, ["part brokers"] * 3, 13, brokers, network=network)
    finally:
        for broker in brokers:
            broker.stop()
        network.close()


def test_every_place_to_die_at_is_there() -> None:
    """A function that was renamed would be a place that no one dies at."""
    for place in POINTS:
        owner, name = place.owner
        assert callable(getattr(owner, name)), place
    assert len({place.name for place in POINTS}) >= 15
