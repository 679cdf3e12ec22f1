"""`python -m bench.scale [CASE ...] [--realm kafka|embedded] [--small]`: the realm at scale, and one gateway process.

Writes `bench/results/DATE-COMMIT-scale.json`, prints it. Cases: ranges, hole, delayed, settling, idle, recovery,
replay, laggards, searching; and over sockets, to a gateway process: connections, links, fairness, unread, churn,
temporary.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import time
from collections.abc import Callable
from typing import Any

from bench.machine import Machine
from bench.plan import say
from bench.report import RESULTS, commit
from bench.scale.connections import churn, connections
from bench.scale.delayed import delayed
from bench.scale.fairness import fairness
from bench.scale.hole import hole, ranges
from bench.scale.idle import idle
from bench.scale.laggards import laggards
from bench.scale.links import links
from bench.scale.recovery import recovery
from bench.scale.searching import searching
from bench.scale.settling import settling
from bench.scale.temporary import temporary
from bench.scale.unread import unread
from bench.scale.worlds import empty_world
from tests.kit.realm.worlds import World

Case = Callable[[World, int], dict[str, Any]]  # `part`: 1, or how many times smaller
CASES: dict[str, Case] = {
    "hole": lambda world, part: hole(world, 1_000_000 // part),
    "delayed": lambda world, part: delayed(world, 1_000_000 // part),
    "settling": lambda world, part: settling(world, 1_000 // part, 10.0),
    "idle": lambda world, part: idle(world, 2_000 // part),
    "recovery": lambda world, part: recovery(world, 1_000, 1_000_000 // part, snapshots=True),
    "replay": lambda world, part: recovery(world, 1_000, 1_000_000 // part, snapshots=False),
    "laggards": lambda world, part: laggards(world, 10_000_000 // part, 50),
    "searching": lambda world, part: searching(world, 1_000_000 // part),
    "connections": lambda world, part: connections(world, 2_000 // part),
    "links": lambda world, part: links(world, 5_000 // part),
    "fairness": lambda world, part: fairness(world, 30.0 / part),
    "unread": lambda world, part: unread(world, 50 // part),
    "churn": lambda world, part: churn(world, 10_000 // part),
    "temporary": lambda world, part: temporary(world, 20.0 / part),
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.scale", description=__doc__)
    parser.add_argument("cases", nargs="*", choices=["ranges", *CASES, []], help="default: all")
    parser.add_argument("--realm", choices=["kafka", "embedded"], action="append", help="default: both")
    parser.add_argument("--small", action="store_true", help="a tenth of everything")
    arguments = parser.parse_args()
    part, started = (10 if arguments.small else 1), time.strftime("%Y-%m-%dT%H%M")
    gc.freeze()
    gc.set_threshold(100_000, 20, 100)  # as `realmgate wake_some` does
    machine = Machine([])
    report: dict[str, Any] = {"started": started, "commit": commit(), "cores": os.cpu_count(), "part": part}
    for name in arguments.cases or ["ranges", *CASES]:
        if name == "ranges":
            machine.pids = []  # the broker of the case before is gone
            machine.settle()
            report[name] = machine.measured(ranges, 1_000_000 // part)
            say(f"{name}: {report[name]}")
            continue
        for realm in arguments.realm or ["embedded", "kafka"]:
            with empty_world(realm) as (world, machine.pids):
                machine.settle()
                report[f"{name} {realm}"] = machine.measured(CASES[name], world, part)
            say(f"{name} {realm}: {report[f'{name} {realm}']}")
    target = RESULTS / f"{started}-{report['commit']}-scale.json"
    target.write_text(json.dumps(report, indent=1) + "\n")
    print(json.dumps(report, indent=1))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
