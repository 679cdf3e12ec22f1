"""Fixtures of the whole suite: one real Kafka, started when the first test asks for it; gateways on either realm."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests import tiers
from tests.kit.processes import forked
from tests.kit.processes.broker import start_broker
from tests.kit.processes.gateway import GatewayProcess, StartGateway, embedded_realm, kafka_realm, start_gateway
from tests.kit.tables import shipped

# A node of a test does not live as long as to gain by more: half of its processor time went into compiling.
os.environ.setdefault("KAFKA_JVM", "-Xms256m -Xmx1g -XX:TieredStopAtLevel=1")
os.environ.setdefault("KAFKA_GC", "-XX:+UseSerialGC")  # a sixth less processor time than the one with short pauses

# Hundreds of processes are started: each would compile all modules, a second of processor time.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
os.environ["PYTHONPYCACHEPREFIX"] = str(Path(__file__).parent.parent / ".cache" / "bytecode")

# Most tests start gateways and commands to see what those do, and not how they start.
forked.use()
shipped.keep()

# A busy machine says nothing about a test: one example has taken a minute on one. What lands is judged by the same
# examples each time; `tests/fuzz/test_examples.py` (long tier) runs the property tests with others.
settings.register_profile(
    "gate", deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("others", deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("EXAMPLES", "gate"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    tiers.mark(items)


@pytest.fixture(scope="session")
def kafka_bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a real Kafka 4.3 node. Others use it, too: take a prefix of your own. `KAFKA_BOOTSTRAP`: of one
    that is there already. `KAFKA_OF_LANE`: directory of the one that the rooms of a lane share, which stays up."""
    if bootstrap := os.environ.get("KAFKA_BOOTSTRAP"):
        yield bootstrap
        return
    if directory := os.environ.get("KAFKA_OF_LANE"):
        yield start_broker(Path(directory), is_killed=False).bootstrap
        return
    broker = start_broker(tmp_path_factory.mktemp("kafka-session"), is_killed=False)
    yield broker.bootstrap
    broker.stop()


@pytest.fixture
def partitions() -> int:
    """Stores of every node that a realm's tests make, unless they are parametrised by it (`SPREAD`)."""
    return 1


@pytest.fixture
def new_gateway(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[StartGateway]:
    """`new_gateway("embedded")`, `new_gateway("kafka", limits={...})`: a real gateway process on its own realm, ready.
    It is stopped at the end of the test, and must end in order: exit code 0."""
    started: list[GatewayProcess] = []

    def start(realm_kind: str, **settings: Any) -> GatewayProcess:
        directory = tmp_path / f"gateway-{len(started)}"
        if realm_kind == "kafka":
            realm = kafka_realm(request.getfixturevalue("kafka_bootstrap"), f"t{uuid.uuid4().hex[:8]}")
        else:
            realm = embedded_realm(directory)
        started.append(start_gateway(directory, realm, **settings))
        return started[-1]

    yield start
    ends = [(process.stop(), process.log()) for process in started]
    for code, log in ends:
        assert code == 0, f"a gateway ended with {code}:\n{log}"
