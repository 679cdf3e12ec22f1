"""The fixtures of the realm's contract: every log, and realms opened on it. Test files import the fixtures by name.

The simulated log runs twice: faultless, and with gaps, delays, split batches, a stable offset that lags and reads that
find nothing. What is marked `SPREAD` runs with nodes of one, two and three stores.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from native_backend.limits import RealmLimits
from native_backend.log.simulated.faults import Faults
from tests.kit.realm.realm_process import Consumer, RealmProcess
from tests.kit.realm.worlds import KafkaWorld, SimulatedWorld, SqliteWorld, World

UNEVEN = Faults(gap=0.5, split=0.5, delay=0.5, delay_ms_max=20, lag=0.5, lag_ms_max=20, stall=0.2)
SMALL = RealmLimits(window_bytes=6_000, chunk_bytes=3_000, read_count=30, readers=2, reader_turn_s=0.0)
Start = Callable[..., RealmProcess]
SPREAD = pytest.mark.parametrize("partitions", [1, 2, 3], ids="on-{}".format)


@pytest.fixture(params=["sqlite", "simulated", "uneven", "kafka"])
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
def start(world: World, partitions: int) -> Iterator[Start]:
    """Open a realm on the world; each call is another process of the same realm."""
    prefix = f"r{uuid.uuid4().hex[:8]}"
    started: list[RealmProcess] = []

    def realm(limits: RealmLimits | None = None, follows: bool = False) -> RealmProcess:
        """`follows`: although another one, which gives no sign of life, owns it."""
        made = RealmProcess(world, prefix, limits, partitions)
        started.append(made)
        return made.follow() if follows else made.open()

    yield realm
    for process in started:
        process.close()


@pytest.fixture
def realm(start: Start) -> RealmProcess:
    return start()


def bodies(count: int, size: int = 0) -> list[bytes]:
    return [f"{at:08d}".encode().ljust(size, b".") for at in range(count)]


def fold(consumer: Consumer, eids: list[int]) -> list[bytes]:
    return [consumer.bodies[eid] for eid in eids]
