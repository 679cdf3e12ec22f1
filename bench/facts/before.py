"""What a message costs a gateway before a change and after it: processor time of the gateway of another tree and of
this one, which are loaded in turns.

    python -m bench.facts.before TREE [--realms embedded,kafka] [--sizes 100,1024] [--couples 5] [--pairs 6] [--record]

TREE: a clone of this repository at the other commit, in which `make setup` was run. Both gateways of a couple are up at
once, each on a realm of its own; on Kafka it is one broker's. A pair is one turn of each: `--count` messages in, out or
both. The median of a couple's pairs is one value, as in `bench.facts`; printed are the middle of all couples' values
and its interval of 90 %. Processor time is that of all threads of the gateway, microseconds a message.
`--record` writes results/DATE-COMMIT-before.json. Required: what it cost before is at least 0.97 of what it costs now,
in each row. Exit code 1: a middle is below. Errors: `RunFailed`.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any, Final

from bench.facts.interval import LEAST, interval
from bench.facts.turns import ROWS, WARM_TURNS, turn_us
from bench.machine import Machine
from bench.report import keep
from bench.runs import Case
from tests.kit.processes.broker import start_broker
from tests.kit.processes.gateway import GatewayProcess, embedded_realm, kafka_realm, make_gateway

DIRECTORY: Final = Path(__file__).parents[2] / ".cache" / "bench" / "before"
PROGRAM: Final = Path(".venv", "bin", "realmgate")
REALMS: Final = ("embedded", "kafka")
LEAST_RATIO: Final = 0.97
Pairs = dict[str, list[tuple[float, float]]]  # by row: before, after; microseconds a message
_numbers = count()


@contextmanager
def couple(tree: Path, realm: str, bootstrap: str) -> Iterator[tuple[GatewayProcess, GatewayProcess]]:
    """Before and after, on new realms; which of them starts first changes. They are killed at the end."""
    at = next(_numbers)
    before, after = (_gateway(DIRECTORY / f"{at}{name}", realm, bootstrap) for name in "ab")
    before.program = [str(tree / PROGRAM)]
    try:
        for gateway in (after, before) if at % 2 else (before, after):
            gateway.start()
        yield before, after
    finally:
        for gateway in (before, after):
            gateway.kill()
            shutil.rmtree(gateway.config_path.parent, ignore_errors=True)


def _gateway(directory: Path, realm: str, bootstrap: str) -> GatewayProcess:
    """With keys of the configuration that all trees know."""
    where = embedded_realm(directory) if realm == "embedded" else kafka_realm(bootstrap, directory.name)
    gateway = make_gateway(directory, where)
    del gateway.settings["limits"]
    return gateway


def measure(both: tuple[GatewayProcess, GatewayProcess], case: Case, pairs: int) -> Pairs:
    """The first turns do not count: not all is compiled and allocated yet."""
    taken: Pairs = {row: [] for row in ROWS}
    for at in range(WARM_TURNS + pairs):
        for row in ROWS:  # out empties what in has left
            taken[row].append(_pair(both, row, case, at))
    return {row: values[WARM_TURNS:] for row, values in taken.items()}


def _pair(both: tuple[GatewayProcess, GatewayProcess], row: str, case: Case, at: int) -> tuple[float, float]:
    before, after = both
    if at % 2:
        now_us = turn_us(after, row, case)
        return turn_us(before, row, case), now_us
    return turn_us(before, row, case), turn_us(after, row, case)


def figures(couples: Sequence[Pairs]) -> dict[str, dict[str, Any]]:
    """By row: what it cost before, in parts of what it costs now. Raises ValueError where there are too few couples."""
    rows = {}
    for row in ROWS:
        low, middle, high = interval([median(before / after for before, after in pairs[row]) for pairs in couples])
        before_us, after_us = (median(pair[side] for pairs in couples for pair in pairs[row]) for side in (0, 1))
        ends = {"ratio": round(middle, 4), "low": round(low, 4), "high": round(high, 4)}
        rows[row] = {**ends, "before_us": round(before_us, 3), "after_us": round(after_us, 3), "couples": len(couples)}
    return rows


def line_of(realm: str, size: int, row: str, figure: dict[str, Any]) -> str:
    verdict = "met" if figure["ratio"] >= LEAST_RATIO else "NOT met"
    return (
        f"{realm:8} {size:>5} B {row:5} {figure['before_us']:6.2f} us before, {figure['after_us']:6.2f} us now: "
        f"{figure['ratio']:.3f} (90 %: {figure['low']:.3f} to {figure['high']:.3f}), "
        f"required {LEAST_RATIO}: {verdict}"
    )


def commit_of(tree: Path) -> str:
    command = ["git", "-C", str(tree), "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.facts.before", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("tree", type=Path)
    parser.add_argument("--realms", default=",".join(REALMS))
    parser.add_argument("--sizes", default="100,1024", help="octets of a message")
    parser.add_argument("--couples", type=int, default=LEAST)
    parser.add_argument("--pairs", type=int, default=6)
    parser.add_argument("--count", type=int, default=20_000, help="messages of a turn")
    parser.add_argument("--in-flight", type=int, default=1_000)
    parser.add_argument("--record", action="store_true")
    arguments = parser.parse_args()
    tree, realms = arguments.tree.resolve(), arguments.realms.split(",")
    if arguments.couples < LEAST:
        parser.error(f"--couples: {LEAST} are the least")
    if not (tree / PROGRAM).exists():
        parser.error(f"there is no {tree / PROGRAM}: run `make setup` in that tree")
    if wrong := {*realms} - {*REALMS}:
        parser.error(f"--realms: no realm is called {', '.join(sorted(wrong))}")
    cases = [Case(int(size), arguments.in_flight, arguments.count) for size in arguments.sizes.split(",")]
    return compare(tree, realms, cases, arguments)


def compare(tree: Path, realms: Sequence[str], cases: Sequence[Case], arguments: argparse.Namespace) -> int:
    started, rows = time.strftime("%Y-%m-%dT%H%M"), []
    shutil.rmtree(DIRECTORY, ignore_errors=True)
    broker = start_broker(DIRECTORY / "broker") if "kafka" in realms else None
    try:
        for realm in realms:
            for case in cases:
                result = _couples(tree, realm, broker.bootstrap if broker else "", case, arguments)
                for row, figure in result["rows"].items():
                    sys.stdout.write(f"{line_of(realm, case.size, row, figure)}\n")
                    sys.stdout.flush()
                rows.append({"realm": realm, "size": case.size, **result})
    finally:
        if broker:
            broker.stop()
        shutil.rmtree(DIRECTORY, ignore_errors=True)
    foreign = median(share for result in rows for share in result["foreign_cpu"])
    sys.stdout.write(f"before is {commit_of(tree)}; others used {foreign:.0%} of the machine (median)\n")
    if arguments.record:
        words = " ".join(word for word in sys.argv[1:] if word != str(arguments.tree))
        kept = keep(started, "before", {"command": words, "before": commit_of(tree), "rows": rows})
        sys.stdout.write(f"{kept}\n")
    return int(any(figure["ratio"] < LEAST_RATIO for result in rows for figure in result["rows"].values()))


def _couples(tree: Path, realm: str, bootstrap: str, case: Case, arguments: argparse.Namespace) -> dict[str, Any]:
    taken, foreign = [], []
    for at in range(arguments.couples):
        sys.stderr.write(f"bench.facts.before: {realm}, {case.size} B, couple {at + 1} of {arguments.couples}\n")
        with couple(tree, realm, bootstrap) as both:
            machine = Machine([gateway.pid for gateway in both])
            sample = machine.measured(lambda both=both: {"pairs": measure(both, case, arguments.pairs)})
        taken.append(sample["pairs"])
        foreign.append(sample["foreign_cpu"])
    return {"rows": figures(taken), "foreign_cpu": foreign, "couples": taken}


if __name__ == "__main__":
    raise SystemExit(main())
