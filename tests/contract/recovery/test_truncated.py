"""The contract of the realm: a log loses the end of some of its topics. What is stored from then on gets EIDs that
states hold for acknowledged; it is given all the same, and nothing is given again that had been acknowledged before."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from native_backend.limits import RealmLimits
from tests.contract.recovery.truncations import TRUNCATIONS, Ends
from tests.kit.processes.broker import Broker, start_broker
from tests.kit.realm.fixtures import UNEVEN, Start
from tests.kit.realm.realm_process import RealmProcess
from tests.kit.realm.worlds import KafkaWorld, SimulatedWorld, SqliteWorld, World


@contextmanager
def realm_of(world: World) -> Iterator[Start]:
    """Starts gateways of a realm of its own."""
    prefix = f"r{uuid.uuid4().hex[:8]}"
    started: list[RealmProcess] = []

    def start(limits: RealmLimits | None = None) -> RealmProcess:
        started.append(RealmProcess(world, prefix, limits))
        return started[-1].open()

    yield start
    for process in started:
        process.close()


@pytest.mark.parametrize("name", TRUNCATIONS)
@pytest.mark.parametrize("kind", ["sqlite", "simulated", "uneven"])
def test_a_log_loses_its_end(tmp_path: Path, kind: str, name: str) -> None:
    world: World
    if kind == "sqlite":
        world = SqliteWorld(tmp_path / "realm")
    else:
        world = SimulatedWorld(kind, UNEVEN if kind == "uneven" else None)
    with realm_of(world) as start:
        truncation = TRUNCATIONS[name](start)
        world.cut(next(truncation))
        assert next(truncation, None) is None
    world.close()


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    broker = start_broker(tmp_path / "kafka")
    yield broker
    broker.stop()


def test_kafka_loses_the_end_of_topics(broker: Broker) -> None:
    """Files of segments are cut while the node is down; all truncations around one such moment."""
    world = KafkaWorld(broker.bootstrap, broker)
    with ExitStack() as realms:
        running = {name: truncation(realms.enter_context(realm_of(world))) for name, truncation in TRUNCATIONS.items()}
        ends: Ends = {}
        for trial in running.values():
            ends |= next(trial)
        world.cut(ends)
        failed = []
        for name, trial in running.items():
            try:
                assert next(trial, None) is None
            except AssertionError as error:
                error.add_note(f"in {name}")
                failed.append(error)
        if failed:
            raise ExceptionGroup("truncations that failed", failed)
    world.close()
