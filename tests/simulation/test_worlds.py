"""Worlds without a fault of ours: no checker has anything to say, and a seed always gives the same world."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

import pytest

from tests.simulation.seeds import SEEDS
from tests.simulation.world import World

_BLOCK = 10


@dataclass(frozen=True, slots=True)
class Lived:
    """What happened in a world."""

    did: frozenset[str]
    counts: Mapping[str, int]
    ends: frozenset[str]


@cache
def lived(seed: int) -> Lived:
    """Raises where a checker objects."""
    world = World(seed).live()
    return Lived(frozenset(world.walk.did), dict(world.observers.counts), frozenset(world.runs.values()))


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Worlds go wrong on purpose, and say so at length."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("block", range(0, len(SEEDS), _BLOCK))
def test_no_checker_objects(block: int) -> None:
    for seed in SEEDS[block : block + _BLOCK]:
        lived(seed)


def test_the_same_seed_gives_the_same_world() -> None:
    for seed in SEEDS[:6]:
        first, second = World(seed).live(), World(seed).live()
        assert first.trace == second.trace
        assert first.observers.counts == second.observers.counts
    assert World(SEEDS[0]).live().trace != World(SEEDS[1]).live().trace


def test_the_worlds_are_not_idle() -> None:
    """Among sixty seeds everything happens that the walk can do, and a fair number of messages passes: 37 are published
    and 57 given in one, but a single one may have none, and sixteen of them are too few for a mean: 45 were given."""
    worlds = [lived(seed) for seed in SEEDS[:60]]
    did = frozenset[str]().union(*(world.did for world in worlds))
    assert {"publish", "state", "credit", "attach", "detach", "drain", "drop", "kill", "stop", "end_session"} <= did
    assert sum(world.counts.get("published", 0) for world in worlds) > 25 * len(worlds)
    assert sum(world.counts.get("given", 0) for world in worlds) > 45 * len(worlds)
    assert {"killed", "stopped"} <= frozenset[str]().union(*(world.ends for world in worlds))
