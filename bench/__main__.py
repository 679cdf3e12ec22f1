"""`python -m bench [--quick] [--repeat N] [--[no-]memory]`: writes `bench/results/DATE-COMMIT.json` and `.md`.

Progress on stderr, the table on stdout. Exit 1 when a run failed.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time

from bench.plan import Plan, say
from bench.report import RESULTS, document, markdown
from bench.runs import Case
from bench.systems import running

COUNTS = {(100, 1): 2_000, (1024, 1): 2_000, (100, 1000): 300_000, (1024, 1000): 300_000}


def cases(quick: bool) -> list[Case]:
    """1,000 in flight first: the others are measured on systems that have long been warm."""
    windows = [1000] if quick else [1000, 5000, 1]
    return [Case(size, window, COUNTS[size, min(window, 1000)]) for window in windows for size in (100, 1024)]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="medians of 3, 1,000 in flight only")
    parser.add_argument("--repeat", type=int, help="samples of each row; default: 5, with --quick 3")
    parser.add_argument(
        "--memory",
        action=argparse.BooleanOptionalAction,
        help="ten million messages, and what the gateway holds meanwhile; default: with a whole run, not with --quick",
    )
    arguments = parser.parse_args()
    with_memory = not arguments.quick if arguments.memory is None else arguments.memory
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # unwinds: everything started is stopped
    started = time.strftime("%Y-%m-%dT%H%M")
    with running() as systems:
        plan = Plan(systems, cases(arguments.quick), arguments.repeat or (3 if arguments.quick else 5))
        plan.run()
        memory = plan.memory() if with_memory else None
        results = document(plan, "python -m bench " + " ".join(sys.argv[1:]), started, memory)
    RESULTS.mkdir(exist_ok=True)
    target = RESULTS / f"{started}-{results['commit']}.json"
    target.write_text(json.dumps(results, indent=1) + "\n")
    table = markdown(results)
    target.with_suffix(".md").write_text(table)
    print(table)
    say(f"written: {target}")
    return 1 if plan.failures else 0


if __name__ == "__main__":
    sys.exit(main())
