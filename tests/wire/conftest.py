"""One gateway of each profile for a module; nodes called `any.*` are made on attach."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from tests.kit.processes.gateway import GatewayProcess, embedded_realm, start_gateway

NODES = {"create_on_attach": ["any.*"]}
_NUMBERS = itertools.count()


def serve(factory: pytest.TempPathFactory, **settings: object) -> Iterator[GatewayProcess]:
    directory = factory.mktemp("gateway")
    gateway = start_gateway(directory, embedded_realm(directory), **{"nodes": NODES, **settings})
    yield gateway
    gateway.end_well()


@pytest.fixture(scope="package")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """The shipped default."""
    yield from serve(tmp_path_factory)


@pytest.fixture(scope="package")
def documented(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """Profile um-9.12."""
    yield from serve(tmp_path_factory, mappings={"profile": "um-9.12"})


@pytest.fixture(scope="package")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """Small limits."""
    limits = {"message_size_bytes": 5000, "credit_per_link": 5, "frame_size_bytes": 1024, "links_per_session": 3}
    yield from serve(tmp_path_factory, limits=limits)


@pytest.fixture
def node() -> str:
    """A name that no other test uses."""
    return f"any.{next(_NUMBERS)}"
