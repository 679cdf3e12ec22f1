"""What the facts for operators cost a gateway: processor time a message, with and without them, on the embedded realm.

    python -m bench.facts [--couples 24] [--pairs 20] [--minutes 12] [--facts FACT,...] [--control] [--record]
    python -m bench.facts --inside [--couples 24] [--pairs 20] [--minutes 12] [--record]

For each couple two gateways begin: one records its facts, from the other one their recording was taken out
(`recorded.py` names what, and what cannot be). The C load client loads them in turns: in, out, both. The median of a
couple's pairs is one value; printed are the middle of all couples' values, and its interval of 90 %. `--facts`: the
cost of these alone. `--control`: nothing is taken out, so that the error of the bench itself is seen. `--inside`:
single processes say how long they were busy with each fact (`inside.py`), in `--pairs` turns; beside others that use
the machine only this decides. What is done by time (`depths`) costs the more a message, the slower messages come.
`--record` writes results/DATE-COMMIT-facts.json. Required: at most 2 %, which is shown, refuted or not decided. Exit
code 1: it is not shown for in, out or both. Errors: `RunFailed`, `RuntimeError`.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Final

from bench.facts.inside import timed, whole
from bench.facts.interval import LEAST, interval
from bench.facts.recorded import FACTS
from bench.facts.turns import ROWS, couple, difference
from bench.machine import Machine
from bench.report import keep
from bench.runs import Case

DIRECTORY: Final = Path(__file__).parents[2] / ".cache" / "bench" / "facts"
MOST: Final = 0.02
Sample = dict[str, Any]


def measure(arguments: argparse.Namespace, take: Callable[[int], Sample]) -> list[Sample]:
    """`take(0)`, `take(1)` and so on, each in an empty directory; after `LEAST` none that would end after `minutes`."""
    samples: list[Sample] = []
    end_s = time.monotonic() + 60 * arguments.minutes
    for at in range(arguments.couples):
        began_s = time.monotonic()
        shutil.rmtree(DIRECTORY, ignore_errors=True)
        sample = take(at)
        samples.append(sample)
        now_s = time.monotonic()
        costs = ", ".join(f"{row} {cost:+.2%}" for row, cost in sample["costs"].items())
        sys.stderr.write(f"bench.facts: {costs}; {sample['foreign_cpu']:.0%} used by others\n")
        if len(samples) >= LEAST and now_s + (now_s - began_s) > end_s:
            break
    return samples


def take_couple(case: Case, pairs: int, facts: tuple[str, ...], at: int) -> Sample:
    with couple(DIRECTORY, facts, at) as both:
        machine = Machine([both.recording.gateway.pid, both.without.gateway.pid])
        sample = machine.measured(lambda: {"turns": both.measure(case, pairs)})
    return {**sample, "costs": {row: difference(turns) for row, turns in sample["turns"].items()}}


def take_inside(case: Case, turns: int) -> Sample:
    with timed(DIRECTORY) as process:
        machine = Machine([process.loaded.gateway.pid])
        sample = machine.measured(lambda: {"turns": process.measure(case, turns)})
    return {**sample, "costs": {row: median(map(whole, taken)) for row, taken in sample["turns"].items()}}


def figures(samples: Sequence[Sample]) -> dict[str, dict[str, Any]]:
    """By row. Raises ValueError where there are too few couples."""
    rows = {}
    for row in ROWS:
        low, middle, high = spread = interval([sample["costs"][row] for sample in samples])
        ends = {"difference": round(middle, 5), "low": round(low, 5), "high": round(high, 5)}
        turns = [turn for sample in samples for turn in sample["turns"][row]]
        rows[row] = {**ends, "count": len(samples), "verdict": spread.verdict(MOST), **_typical(turns)}
    return rows


def _typical(turns: list[Any]) -> dict[str, Any]:
    """Medians of all turns, of couples or of single processes."""
    if isinstance(turns[0], tuple):
        return {"without_us": round(median(without for _, without in turns), 3)}
    shares = {fact: round(median(turn["facts"][fact] for turn in turns), 5) for fact in FACTS}
    return {"without_us": median(turn["us"] for turn in turns), "facts": shares}


def line_of(row: str, figure: dict[str, Any]) -> str:
    cost = f"{figure['without_us']:.2f} us a message without facts"
    share = f"{figure['difference']:+.2%} (90 %: {figure['low']:+.2%} to {figure['high']:+.2%})"
    facts = "".join(f"\n      {fact:9} {part:+.2%}" for fact, part in figure.get("facts", {}).items())
    return f"{row:5} {cost}: {share} of {figure['count']}: at most {MOST:.0%} {figure['verdict']}{facts}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.facts", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--couples", type=int, default=24)
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--count", type=int, default=20_000, help="messages of a turn")
    parser.add_argument("--size", type=int, default=100, help="octets of a message")
    parser.add_argument("--in-flight", type=int, default=1_000)
    parser.add_argument("--minutes", type=float, default=12.0)
    parser.add_argument("--facts", default=",".join(FACTS), help="those that are taken out")
    parser.add_argument("--control", action="store_true", help="take out nothing")
    parser.add_argument("--inside", action="store_true", help="measure inside of single processes")
    parser.add_argument("--record", action="store_true")
    arguments = parser.parse_args()
    if arguments.couples < LEAST:
        parser.error(f"--couples: {LEAST} are the least")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # unwinds: the gateways are stopped
    started, facts = time.strftime("%Y-%m-%dT%H%M"), () if arguments.control else tuple(arguments.facts.split(","))
    try:
        case = Case(arguments.size, arguments.in_flight, arguments.count)
        inside, couples = (
            partial(take_inside, case, arguments.pairs),
            partial(take_couple, case, arguments.pairs, facts),
        )
        samples = measure(arguments, (lambda _: inside()) if arguments.inside else couples)
    finally:
        shutil.rmtree(DIRECTORY, ignore_errors=True)
    rows = figures(samples)
    sys.stdout.write("".join(f"{line_of(row, figure)}\n" for row, figure in rows.items()))
    foreign = median(sample["foreign_cpu"] for sample in samples)
    sys.stdout.write(f"others used {foreign:.0%} of the machine (median)\n")
    if arguments.record:
        result = {"command": " ".join(sys.argv[1:]), "facts": facts, "rows": rows, "samples": samples}
        sys.stdout.write(f"{keep(started, 'facts', result)}\n")
    return int(any(figure["verdict"] != "shown" for figure in rows.values()))


if __name__ == "__main__":
    raise SystemExit(main())
