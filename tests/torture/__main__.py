"""`python -m tests.torture --seed N`: one run (with --runs, that many from there on), closed by one line of figures.

Exit 1 when a promise was broken; the histories and the gateways' words stay in --dir. May import: `tests`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from random import Random

from tests.broker import Broker, start_cluster
from tests.torture.checks import Breach
from tests.torture.crash_points import Point
from tests.torture.nemesis import points_of
from tests.torture.play import Figures, Play, scratch
from tests.torture.proxy import Proxy, broker_behind_proxy


def main() -> int:
    arguments = _arguments()
    directory = arguments.dir or Path(tempfile.mkdtemp(prefix="torture-"))
    brokers, proxy = _realm(arguments.realm, directory / "kafka")
    total = Figures()
    try:
        for seed in range(arguments.seed, arguments.seed + arguments.runs):
            figures = _run(arguments, directory, seed, brokers, proxy)
            print(f"seed {seed}, {arguments.realm}: {figures.line()}", flush=True)
            for breach in figures.breaches[:5]:
                print(breach, file=sys.stderr, flush=True)
            total += figures
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
    finally:
        for broker in brokers:
            broker.stop()
        if proxy is not None:
            proxy.close()
    if arguments.runs > 1:
        print(f"all {total.runs} runs on {arguments.realm}: {total.line()}")
        print("deaths at named places: " + ", ".join(f"{name} {count}" for name, count in sorted(total.points.items())))
    if total.breaches:
        print(f"everything is in {directory}", file=sys.stderr)
    return 1 if total.breaches else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.torture")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--acts", type=int, default=8, help="things that go wrong in one run")
    parser.add_argument("--realm", choices=("embedded", "kafka", "cluster"), default="embedded")
    parser.add_argument("--only", help="this act, each time")
    parser.add_argument("--points", action="store_true", help="also die once at every named place of the realm")
    parser.add_argument("--spark", action="store_true", help="ask Spark about the same runs, too")
    parser.add_argument("--dir", type=Path, help="where everything is left; a temporary directory without it")
    return parser.parse_args()


def _realm(kind: str, directory: Path) -> tuple[list[Broker], Proxy | None]:
    """The brokers; a lone one has a proxy between itself and its clients."""
    if kind == "embedded":
        return [], None
    if kind == "cluster":
        return start_cluster(directory), None
    broker, proxy = broker_behind_proxy(directory)
    return [broker], proxy


def _run(
    arguments: argparse.Namespace, directory: Path, seed: int, brokers: list[Broker], proxy: Proxy | None
) -> Figures:
    stage = scratch(directory / f"seed-{seed}", seed, brokers, proxy)
    random = Random(f"{seed} acts")
    try:
        play = Play(stage, seed)
        names = [arguments.only] if arguments.only else play.nemesis.names
        acts: list[str | Point] = [*random.choices(names, k=arguments.acts)]
        if arguments.points:
            acts += points_of(stage.kind)
            random.shuffle(acts)
        return play.run(acts, ask_spark=arguments.spark)
    except (AssertionError, RuntimeError) as fault:  # the others are worth having
        return Figures(runs=1, breaches=[Breach("comes through", f"seed {seed}: {fault}")])
    finally:
        stage.close()


if __name__ == "__main__":
    sys.exit(main())
