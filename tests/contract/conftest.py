"""The worlds in which the contract of the log port is tested: every driver, the simulated one twice: faultless and
with every fault that does not lose an answer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from native_backend.log.simulated.faults import Faults
from tests.kit.realm.worlds import KafkaWorld, OpenLog, SimulatedWorld, SqliteWorld, World

UNEVEN = Faults(gap=0.5, split=0.5, delay=0.8, lag=0.5, stall=0.3)
KAFKA = pytest.param(  # kafka-python 3.0.12 reads its schemas by a deprecated call
    "kafka", marks=pytest.mark.filterwarnings("ignore:(read|open)_text is deprecated:DeprecationWarning")
)


@pytest.fixture(params=["sqlite", "simulated", "uneven", KAFKA])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    made: World
    if request.param == "sqlite":
        made = SqliteWorld(tmp_path / "realm")
    elif request.param == "kafka":
        made = KafkaWorld(request.getfixturevalue("kafka_bootstrap"))
    else:
        made = SimulatedWorld(request.param, UNEVEN if request.param == "uneven" else None)
    yield made
    made.close()


@pytest.fixture
def opened(world: World) -> OpenLog:
    return OpenLog(world)
