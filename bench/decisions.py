"""What a decision of the mapping tables costs, and how long all shipped tables take to read and check: processor time.

`python -m bench.decisions` prints it as JSON; `make bench` records it. What is called are the methods by which a
consuming and a publishing link decide, once for a run of deliveries; what the tables keep for them is looked up through
the same dictionaries by everything that asks. Loops are included.
"""

from __future__ import annotations

import json
import sys
import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from itertools import repeat
from typing import Any

from gateway.links.consuming import ConsumingLink
from gateway.links.publishing import PublishingLink
from mappings import load_tables
from mappings.compiler.table_set import SHIPPED, load_rules

DECISION_US = 0.1  # what is required
CHECK_S = 1.0
_COUNT = 1_000_000
_TRIES = 5


def decisions(count: int = _COUNT) -> dict[str, Any]:
    """The best of several tries: others on the machine only ever add."""
    calls = {"settle_us": _settle(), "publish_us": _publish(), "look_up_us": _look_up()}
    best = {name: min(_seconds(ask, count) for _ in range(_TRIES)) / count * 1e6 for name, ask in calls.items()}
    return {
        **{name: round(cost, 4) for name, cost in best.items()},
        "allocated_bytes": _allocated(_settle()),
        "check_s": round(min(_check_seconds() for _ in range(_TRIES)), 3),
    }


def lines_of(figures: dict[str, Any]) -> list[str]:
    """Lines of the report."""
    settle, check = figures["settle_us"], figures["check_s"]
    return [
        f"Decision of a settled run: {settle:.3f} us, required {DECISION_US}: {_met(settle <= DECISION_US)}; "
        f"{figures['allocated_bytes']} bytes allocated, required 0: {_met(figures['allocated_bytes'] == 0)}. "
        f"Of a published run: {figures['publish_us']:.3f} us. The look-up alone: {figures['look_up_us']:.3f} us.",
        f"All shipped tables read and checked: {check:.2f} s, required {CHECK_S:.0f}: {_met(check < CHECK_S)}.",
    ]


def _met(met: bool) -> str:
    return "met" if met else "NOT met"


def _settle() -> Callable[[], object]:
    """As a consuming link asks about each run of dispositions."""
    link = ConsumingLink.__new__(ConsumingLink)
    constants = {"subscription": "queue", "source_durability": "none", "receiver_settle_mode": "first"}
    link._settle = load_tables()["settle"].slice(**constants).decisions
    return partial(link.decide, "accepted")


def _publish() -> Callable[[], object]:
    """As a publishing link asks about each run of messages that do not all meet the same cell."""
    link = PublishingLink.__new__(PublishingLink)
    link._mode = "unsettled"
    constants = {"sender_settle_mode": link._mode, "rejected": "agreed", "released": "agreed"}
    link._publish = {link._mode: load_tables()["publish"].slice(**constants).decisions}
    return partial(link.decide, "event", "no", 0)


def _look_up() -> Callable[[], object]:
    settle = load_tables()["settle"].slice(subscription="queue", source_durability="none", receiver_settle_mode="first")
    decisions = settle.decisions
    return lambda: decisions["accepted"]["no"]["below"]


def _seconds(ask: Callable[[], object], count: int) -> float:
    began = time.process_time()
    for _ in repeat(None, count):
        ask()
    return time.process_time() - began


def _allocated(ask: Callable[[], object]) -> int:
    """The most that decisions hold at any moment beyond what one of them does."""
    tracemalloc.start()
    try:
        peaks = []
        for count in (1, 1, 1_000):  # the first call warms up
            tracemalloc.reset_peak()
            before, _ = tracemalloc.get_traced_memory()
            _seconds(ask, count)
            peaks.append(tracemalloc.get_traced_memory()[1] - before)
        return peaks[2] - peaks[1]
    finally:
        tracemalloc.stop()


def _check_seconds() -> float:
    began = time.process_time()
    _, problems = load_rules(SHIPPED)
    assert not problems
    return time.process_time() - began


if __name__ == "__main__":
    json.dump(decisions(), sys.stdout, indent=1)
    print()
