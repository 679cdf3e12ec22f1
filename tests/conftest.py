"""Fixtures of the whole suite. A real Kafka starts when the first test asks for it, and is stopped by its pid at the end."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.broker import start_broker


@pytest.fixture(scope="session")
def kafka_bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a real Kafka 4.3 node. Shared by the session: take a prefix of your own."""
    broker = start_broker(tmp_path_factory.mktemp("kafka-session"))
    yield broker.bootstrap
    broker.stop()
