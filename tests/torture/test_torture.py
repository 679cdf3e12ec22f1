"""Short runs with every promise kept, on each realm; long ones are recorded in bench/results/."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.broker import Broker
from tests.torture.crash_points import POINTS, Point
from tests.torture.nemesis import IN_FLIGHT
from tests.torture.play import Figures, Play, scratch
from tests.torture.proxy import Proxy, broker_behind_proxy
from tests.torture.stage import NODES

STORES = 2 + sum(int(node.get("partitions", 0)) + int(node.get("priority-levels", 0)) for node in NODES)


@pytest.fixture
def kafka(tmp_path: Path) -> Iterator[tuple[Broker, Proxy]]:
    broker, proxy = broker_behind_proxy(tmp_path / "kafka")
    yield broker, proxy
    broker.stop()
    proxy.close()


def torture(
    directory: Path,
    acts: list[str | Point],
    seed: int,
    brokers: Sequence[Broker] = (),
    proxy: Proxy | None = None,
    ask_spark: bool = False,
) -> Figures:
    stage = scratch(directory / "stage", seed, brokers, proxy)
    try:
        figures = Play(stage, seed).run(acts, ask_spark=ask_spark)
    finally:
        stage.close()
    assert not figures.breaches, "\n".join([figures.line(), *map(str, figures.breaches[:10])])
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
    """Spark finds no anomaly in it either, and no hole where the disk was full."""
    acts: list[str | Point] = [
        "kill gateway",
        point("commit, completion"),
        "fill disk",
        "reload",
        point("journal, settle"),
        point("unit, answer"),
        "cut",
    ]
    figures = torture(tmp_path, acts, seed=11, ask_spark=True)
    assert figures.kills == 4
    assert figures.points == {"commit, completion": 1, "journal, settle": 1, "unit, answer": 1}


@pytest.mark.timeout(900)
def test_kafka(tmp_path: Path, kafka: tuple[Broker, Proxy]) -> None:
    broker, proxy = kafka
    figures = torture(tmp_path, [point("commit, answer"), "cut kafka", "kill kafka"], 12, [broker], proxy)
    assert figures.kills == 2


def test_every_place_to_die_at_is_there() -> None:
    """A function that was renamed would be a place that nobody dies at."""
    for each in POINTS:
        owner, name = each.owner
        assert callable(getattr(owner, name)), each
    assert len({each.name for each in POINTS}) >= 15
