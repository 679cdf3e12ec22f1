"""`python -m tests.simulation --seed N`: one world, and what it was like. With --worlds, that many from there on."""

from __future__ import annotations

import argparse
import logging
import sys
import time

from tests.simulation.observation.checker import Violation
from tests.simulation.world import World


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--worlds", type=int, default=1)
    arguments = parser.parse_args()
    logging.disable(logging.CRITICAL)
    failed = 0
    for seed in range(arguments.seed, arguments.seed + arguments.worlds):
        failed += not _live(seed)
    return 1 if failed else 0


def _live(seed: int) -> bool:
    world, begin = World(seed), time.perf_counter()
    try:
        world.live()
    except Violation as violation:
        print(f"seed {seed}: {violation}\n")
        print("\n".join(world.last))
        print(f"\nagain: make simulate SEED={seed}")
        return False
    print(_summary(world, time.perf_counter() - begin))
    return True


def _summary(world: World, seconds: float) -> str:
    shape, counts = world.shape, world.observers.counts
    did = ", ".join(f"{name} {count}" for name, count in sorted(world.walk.did.items()))
    seen = ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))
    ends = list(world.runs.values())
    lives = f"{len(ends)} lives of the gateway, {ends.count('killed')} killed"
    return (
        f"seed {world.seed}: {shape.clients} clients, {shape.weather} weather, {lives}\n"
        f"  did   {did}\n  seen  {seen}\n"
        f"  {len(world.checkers)} checkers have nothing to say; trace {world.trace}, {seconds:.2f} s"
    )


if __name__ == "__main__":
    sys.exit(main())
