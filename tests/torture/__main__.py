"""`python -m tests.torture --seed N`: one run (with --runs, that many from there on), closed by one line of figures.

Exit 1 when a guarantee was broken; the histories and the gateways' words stay in --dir.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from random import Random
from subprocess import SubprocessError

from tests.kit.processes.broker import Broker, start_cluster
from tests.torture.checks.guarantees import Violation
from tests.torture.crash_points import Point
from tests.torture.ledger import Ledger
from tests.torture.run import Figures, Run, scratch
from tests.torture.system.deployment import Deployment
from tests.torture.system.nemesis import faults_of, points_of
from tests.torture.system.proxy import Proxy, broker_behind_proxy

RETAIN_S = 10  # where gateways die while they trim
DEATHS = 18  # in one run, at most


def main() -> int:
    arguments = _arguments()
    directory = arguments.dir or Path(tempfile.mkdtemp(prefix="torture-"))
    brokers, proxy = _realm(arguments.realm, directory / "kafka")
    total, ledger = Figures(), Ledger(arguments.ledger)
    until = time.monotonic() + arguments.seconds
    try:
        for seed in itertools.count(arguments.seed):
            faults = _faults(arguments, seed, ledger.deaths(arguments.realm))
            if not faults or time.monotonic() > until:
                break
            deployment = scratch(directory / f"seed-{seed}", seed, brokers, proxy, RETAIN_S if _dies(arguments) else 0)
            figures = _run(deployment, seed, faults, ask_spark=arguments.spark)
            print(f"seed {seed}, {arguments.realm}: {figures.line()}", flush=True)
            for violation in figures.violations[:5]:
                print(violation, file=sys.stderr, flush=True)
            ledger.add({"realm": arguments.realm, "seed": seed, **figures.entry()})
            total += figures
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
    finally:
        for broker in brokers:
            broker.stop()
        if proxy is not None:
            proxy.close()
    if total.runs > 1:
        print(f"all {total.runs} runs on {arguments.realm}: {total.line()}")
    if _dies(arguments):
        print(_deaths(_places(arguments), ledger.deaths(arguments.realm)))
    if total.violations:
        print(f"everything is in {directory}", file=sys.stderr)
    return 1 if total.violations else 0


def _deaths(places: list[Point], deaths: Counter[str]) -> str:
    tally = {point.name: deaths[point.name] for point in places}
    least = min(tally.values())
    counts = ", ".join(f"{name} {count}" for name, count in tally.items())
    return f"{len(tally)} named places, {sum(tally.values())} deaths, at least {least} at each: {counts}"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.torture")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--faults", "--acts", type=int, default=8, help="things that go wrong in one run")
    parser.add_argument("--realm", choices=("embedded", "kafka", "cluster"), default="embedded")
    parser.add_argument("--only", help="this fault, each time")
    parser.add_argument("--points", action="store_true", help="also die once at every named place of the realm")
    parser.add_argument("--crash-points", type=int, default=0, help="nothing else but die so often at each of them")
    parser.add_argument("--ledger", type=Path, help="deaths of earlier runs, which count; these are added")
    parser.add_argument("--own", action="store_true", help="only at places that no other realm has")
    parser.add_argument("--seconds", type=float, default=3600.0, help="after that no run is begun")
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


def _dies(arguments: argparse.Namespace) -> bool:
    return bool(arguments.points or arguments.crash_points)


def _places(arguments: argparse.Namespace) -> list[Point]:
    return points_of(arguments.realm, only_own=arguments.own)


def _faults(arguments: argparse.Namespace, seed: int, deaths: Counter[str]) -> list[str | Point]:
    """Of the run with that seed; nothing when all is done."""
    random = Random(f"{seed} acts")
    if arguments.crash_points:
        due = [point for point in _places(arguments) for _ in range(deaths[point.name], arguments.crash_points)]
        return [*random.sample(due, min(len(due), DEATHS))]
    if seed >= arguments.seed + arguments.runs:
        return []
    names = [arguments.only] if arguments.only else faults_of(arguments.realm)
    faults: list[str | Point] = [*random.choices(names, k=arguments.faults)]
    if arguments.points:
        faults += _places(arguments)
        random.shuffle(faults)
    return faults


def _run(deployment: Deployment, seed: int, faults: list[str | Point], *, ask_spark: bool) -> Figures:
    try:
        return Run(deployment, seed).run(faults, ask_spark=ask_spark)
    except (AssertionError, RuntimeError, SubprocessError) as fault:  # the others are worth having
        return Figures(runs=1, violations=[Violation("comes through", f"seed {seed}: {fault}")])
    finally:
        deployment.close()


if __name__ == "__main__":
    sys.exit(main())
