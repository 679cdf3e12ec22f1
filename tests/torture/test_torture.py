"""Short runs with every promise kept, on each realm; long ones are recorded in bench/results/."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker import Broker, start_broker
from tests.torture.crash_points import POINTS, Point
from tests.torture.nemesis import IN_FLIGHT
from tests.torture.play import Figures, Play, scratch


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    broker = start_broker(tmp_path / "kafka")
    yield broker
    broker.stop()


def torture(directory: Path, acts: list[str | Point], seed: int, broker: Broker | None = None) -> Figures:
    stage = scratch(directory / "stage", seed, [broker] if broker else None)
    try:
        figures = Play(stage, seed).run(acts)
    finally:
        stage.close()
    assert not figures.breaches, "\n".join([figures.line(), *map(str, figures.breaches[:10])])
    assert figures.least_in_flight >= IN_FLIGHT
    assert figures.accepted >= IN_FLIGHT
    assert figures.ended >= IN_FLIGHT
    assert figures.transactions >= 3
    return figures


def point(name: str) -> Point:
    return next(point for point in POINTS if point.name == name)


def test_embedded(tmp_path: Path) -> None:
    acts: list[str | Point] = [
        "kill gateway",
        point("commit, completion"),
        "fill disk",
        point("journal, settle"),
        "cut",
    ]
    figures = torture(tmp_path, acts, seed=11)
    assert figures.kills == 3
    assert figures.points == {"commit, completion": 1, "journal, settle": 1}


@pytest.mark.timeout(240)
def test_kafka(tmp_path: Path, broker: Broker) -> None:
    figures = torture(tmp_path, [point("commit, answer"), "kill kafka"], seed=12, broker=broker)
    assert figures.kills == 2


def test_every_place_to_die_at_is_there() -> None:
    """A function that was renamed would be a place that nobody dies at."""
    for each in POINTS:
        owner, name = each.owner
        assert callable(getattr(owner, name)), each
    assert len({each.name for each in POINTS}) >= 15
