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
from collections.abc import Sequence
from pathlib import Path
from random import Random
from subprocess import SubprocessError

from tests.kit.processes.broker import Broker, start_cluster, start_cluster_in
from tests.kit.processes.networks import Network, NoNamespacesError
from tests.torture.checks.guarantees import Violation
from tests.torture.crash_points import Point
from tests.torture.ledger import Ledger
from tests.torture.run import Figures, Run, scratch
from tests.torture.system.deployment import Deployment
from tests.torture.system.nemesis import PART, faults_of, points_of
from tests.torture.system.proxy import Proxy, broker_behind_proxy

BROKERS = 3  # of a cluster
RETAIN_S = 10  # where the realm trims: with --trims, and where gateways die
DEATHS = 18  # in one run, at most


def main() -> int:
    arguments = _arguments()
    network = _network() if arguments.realm == "cluster" else None
    names = faults_of(arguments.realm, parts=network is not None)
    if arguments.only and arguments.only not in names:
        print(f"{arguments.only!r} cannot go wrong here; what can: {', '.join(names)}", file=sys.stderr)
        if network is not None:
            network.close()
        return 2
    directory = arguments.dir or Path(tempfile.mkdtemp(prefix="torture-"))
    brokers, proxy = _realm(arguments.realm, directory / "kafka", network)
    total, ledger = Figures(), Ledger(arguments.ledger)
    until = time.monotonic() + arguments.seconds
    try:
        for seed in itertools.count(arguments.seed):
            faults = _faults(arguments, names, seed, ledger.deaths(arguments.realm))
            if not faults or time.monotonic() > until:
                break
            retain_s = RETAIN_S if _dies(arguments) or arguments.trims else 0
            deployment = scratch(directory / f"seed-{seed}", seed, brokers, proxy, network, retain_s)
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
        if network is not None:
            network.close()
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
    parser.add_argument("--trims", action="store_true", help=f"what has ended and evidence are kept for {RETAIN_S} s")
    parser.add_argument("--own", action="store_true", help="only at places that no other realm has")
    parser.add_argument("--seconds", type=float, default=3600.0, help="after that no run is begun")
    parser.add_argument("--spark", action="store_true", help="ask Spark about the same runs, too")
    parser.add_argument("--dir", type=Path, help="where everything is left; a temporary directory without it")
    return parser.parse_args()


def _network() -> Network | None:
    """What the brokers of a cluster are hosts of; without one it says what cannot go wrong then."""
    try:
        return Network(BROKERS)
    except NoNamespacesError as why:
        print(f"{PART!r} is left out, for this machine makes no network namespaces: {why}", file=sys.stderr, flush=True)
        return None


def _realm(kind: str, directory: Path, network: Network | None) -> tuple[list[Broker], Proxy | None]:
    """The brokers; a lone one has a proxy between itself and its clients."""
    if kind == "embedded":
        return [], None
    if kind == "cluster":
        return start_cluster(directory) if network is None else start_cluster_in(network, directory), None
    broker, proxy = broker_behind_proxy(directory)
    return [broker], proxy


def _dies(arguments: argparse.Namespace) -> bool:
    return bool(arguments.points or arguments.crash_points)


def _places(arguments: argparse.Namespace) -> list[Point]:
    return points_of(arguments.realm, only_own=arguments.own)


def _faults(arguments: argparse.Namespace, names: Sequence[str], seed: int, deaths: Counter[str]) -> list[str | Point]:
    """Of the run with that seed; nothing when all is done."""
    random = Random(f"{seed} acts")
    if arguments.crash_points:
        due = [point for point in _places(arguments) for _ in range(deaths[point.name], arguments.crash_points)]
        return [*random.sample(due, min(len(due), DEATHS))]
    if seed >= arguments.seed + arguments.runs:
        return []
    chosen = [arguments.only] if arguments.only else names
    faults: list[str | Point] = [*random.choices(chosen, k=arguments.faults)]
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
