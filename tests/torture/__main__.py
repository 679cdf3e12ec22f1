"""`python -m tests.torture --seed N`: one run (with --runs, that many from there on), closed by one line of figures.

Exit 1 when a promise was broken; the history and the gateway's words stay in --dir. May import: `tests`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from random import Random

from tests.broker import Broker, start_broker
from tests.torture.nemesis import points_of
from tests.torture.play import Figures, Play, scratch


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.torture")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--acts", type=int, default=8, help="things that go wrong in one run")
    parser.add_argument("--realm", choices=("embedded", "kafka"), default="embedded")
    parser.add_argument("--only", help="this act, each time")
    parser.add_argument("--points", action="store_true", help="die once at every named place of the realm")
    parser.add_argument("--dir", type=Path, help="where everything is left; a temporary directory without it")
    arguments = parser.parse_args()
    directory = arguments.dir or Path(tempfile.mkdtemp(prefix="torture-"))
    brokers = [start_broker(directory / "kafka")] if arguments.realm == "kafka" else []
    total = Figures()
    try:
        for seed in range(arguments.seed, arguments.seed + arguments.runs):
            figures = _run(arguments, directory, seed, brokers)
            print(f"seed {seed}, {arguments.realm}: {figures.line()}", flush=True)
            total += figures
    finally:
        for broker in brokers:
            broker.stop()
    if arguments.runs > 1:
        print(f"all {total.runs} runs: {total.line()}")
    for breach in total.breaches[:20]:
        print(breach, file=sys.stderr)
    if total.breaches:
        print(f"everything is in {directory}", file=sys.stderr)
    return 1 if total.breaches else 0


def _run(arguments: argparse.Namespace, directory: Path, seed: int, brokers: list[Broker]) -> Figures:
    stage = scratch(directory / f"seed-{seed}", seed, brokers)
    try:
        play = Play(stage, seed)
        random = Random(f"{seed} acts")
        if arguments.points:
            return play.run(random.sample(points_of(stage.kind), len(points_of(stage.kind))))
        names = [arguments.only] if arguments.only else play.nemesis.names
        return play.run(random.choices(names, k=arguments.acts))
    finally:
        stage.close()


if __name__ == "__main__":
    sys.exit(main())
