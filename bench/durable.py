"""What acknowledgement costs: `python -m bench.durable [--count N] [--repeat N]`, some two minutes.

A channel's backlog goes out, message by message accepted, to a durable subscription and to a plain one, which keeps no
state; both begin at the first event, with the same credit. At least 0.7 times as fast is required.
Prints medians and their ratio, and writes every sample to `bench/results/DATE-COMMIT-durable.json`.
"""

from __future__ import annotations

import argparse
import sys
import time
from statistics import median
from typing import Any

from bench.clients import write
from bench.machine import Machine
from bench.runs import Case, receive_kept, send_kept
from bench.systems import running

CREDIT = 1000
REQUIRED = 0.7


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.durable")
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--repeat", type=int, default=5)
    arguments = parser.parse_args()
    case, samples, started = Case(100, CREDIT, arguments.count), [], time.strftime("%Y-%m-%dT%H%M")
    with running() as systems:
        machine = Machine(systems.pids())
        for system in ("kafka", "embedded"):
            address, channel = systems.addresses()[system], f"durable-{system}"
            send_kept(address, channel, case)
            for turn in range(arguments.repeat + 1):  # the first warms up
                for durable in (None, f"d{turn}"):
                    machine.settle()
                    report = machine.measured(receive_kept, address, channel, case, durable)
                    if turn:
                        samples.append({"system": system, "durable": durable is not None, **report})
            sys.stdout.write(line(system, samples) + "\n")
            sys.stdout.flush()
    write("durable", started, samples)


def line(system: str, samples: list[dict[str, Any]]) -> str:
    mine = [sample for sample in samples if sample["system"] == system]
    plain, durable = (median(turn["rate"] for turn in mine if turn["durable"] is which) for which in (False, True))
    foreign = max(sample["foreign_cpu"] for sample in mine)
    figures = f"plain {plain:,.0f} msg/s, durable {durable:,.0f} msg/s, {foreign:.0%} used by others"
    return f"{system:9} {figures}: {durable / plain:.2f} times, required {REQUIRED}"


if __name__ == "__main__":
    main()
