"""What the facts for operators cost a gateway: processor time a message, with and without them, on the embedded realm.

    python -m bench.facts [--couples 24] [--pairs 20] [--minutes 12] [--facts FACT,...] [--control] [--record]

For each couple two gateways begin: one records its facts, from the other one their recording was taken out
(`recorded.py` names what, and what cannot be). The C load client loads them in turns: in, out, both. The median of a
couple's pairs is one value; printed are the middle of all couples' values, and its interval of 90 %. `--facts`: the
cost of these alone. `--control`: nothing is taken out, so that the error of the bench itself is seen. `--record` writes
results/DATE-COMMIT-facts.json. Required: at most 2 %, which is shown, refuted or not decided. Exit code 1: it is not
shown for in, out or both. Errors: `RunFailed`, `RuntimeError`.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any, Final

from bench.facts.interval import LEAST, interval
from bench.facts.recorded import FACTS
from bench.facts.turns import ROWS, Pairs, couple, difference
from bench.machine import Machine
from bench.report import keep
from bench.runs import Case

DIRECTORY: Final = Path(__file__).parents[2] / ".cache" / "bench" / "facts"
MOST: Final = 0.02
Sample = dict[str, Any]


def measure(arguments: argparse.Namespace, facts: tuple[str, ...]) -> list[Sample]:
    """A sample for each couple; no new one begins after `minutes`."""
    case = Case(arguments.size, arguments.in_flight, arguments.count)
    samples: list[Sample] = []
    end_s = time.monotonic() + 60 * arguments.minutes
    for at in range(arguments.couples):
        began_s = time.monotonic()
        shutil.rmtree(DIRECTORY, ignore_errors=True)
        with couple(DIRECTORY, facts, at) as both:
            machine = Machine([both.recording.gateway.pid, both.without.gateway.pid])
            sample = machine.measured(lambda both=both: {"pairs": both.measure(case, arguments.pairs)})
        samples.append(sample)
        now_s = time.monotonic()
        differences = ", ".join(f"{row} {difference(sample['pairs'][row]):+.2%}" for row in ROWS)
        sys.stderr.write(f"bench.facts: {differences}; {sample['foreign_cpu']:.0%} used by others\n")
        if now_s + (now_s - began_s) > end_s:
            break
    return samples


def figures(samples: Sequence[Sample]) -> dict[str, dict[str, Any]]:
    """By row. Raises ValueError where there are too few couples."""
    rows = {}
    for row in ROWS:
        columns: list[Pairs] = [sample["pairs"] for sample in samples]
        low, middle, high = spread = interval([difference(pairs[row]) for pairs in columns])
        recording, without = (median(pair[at] for pairs in columns for pair in pairs[row]) for at in (0, 1))
        rows[row] = {
            "with_us": round(recording, 3), "without_us": round(without, 3), "couples": len(columns),
            "difference": round(middle, 5), "low": round(low, 5), "high": round(high, 5),
            "verdict": spread.verdict(MOST),
        }  # fmt: skip
    return rows


def line_of(row: str, figure: dict[str, Any]) -> str:
    costs = f"{figure['with_us']:.2f} us a message with facts, {figure['without_us']:.2f} without"
    share = f"{figure['difference']:+.2%} (90 %: {figure['low']:+.2%} to {figure['high']:+.2%})"
    return f"{row:5} {costs}: {share}, {figure['couples']} couples: at most {MOST:.0%} {figure['verdict']}"


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
    parser.add_argument("--record", action="store_true")
    arguments = parser.parse_args()
    if arguments.couples < LEAST:
        parser.error(f"--couples: {LEAST} are the least")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # unwinds: the gateways are stopped
    started, facts = time.strftime("%Y-%m-%dT%H%M"), () if arguments.control else tuple(arguments.facts.split(","))
    try:
        samples = measure(arguments, facts)
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
