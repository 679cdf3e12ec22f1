"""What a decision of the mapping tables costs, and how long all shipped tables take to read and check: processor time.

`python -m bench.decisions` prints it as JSON; `make bench` records it. By index is what a link does that looked its
strides up when it attached; by words is `Slice.decide`, asked once for a run of messages. Loops are included.
May import: `mappings`.
"""

from __future__ import annotations

import json
import sys
import time
import tracemalloc
from collections.abc import Callable
from itertools import repeat
from typing import Any

from mappings import Slice, load_tables
from mappings.table_set import load_rules

DECISION_US = 0.1  # what is required
CHECK_S = 1.0
_COUNT = 1_000_000
_TRIES = 5


def decisions(count: int = _COUNT) -> dict[str, Any]:
    """The best of several tries: others on the machine only ever add."""
    link = load_tables()["settle"].slice(subscription="queue", source_durability="none", receiver_settle_mode="first")
    by_index, by_words = (min(_seconds(way, link, count) for _ in range(_TRIES)) for way in (_by_index, _by_words))
    return {
        "by_index_us": round(by_index / count * 1e6, 4),
        "by_words_us": round(by_words / count * 1e6, 4),
        "allocated_bytes": _allocated(link),
        "check_s": round(min(_check_seconds() for _ in range(_TRIES)), 3),
    }


def told(figures: dict[str, Any]) -> list[str]:
    """Lines of the report."""
    index, check = figures["by_index_us"], figures["check_s"]
    return [
        f"Decision by index: {index:.3f} us, required {DECISION_US}: {_met(index <= DECISION_US)}; "
        f"{figures['allocated_bytes']} bytes allocated, required 0: {_met(figures['allocated_bytes'] == 0)}. "
        f"By words, once for a run of messages: {figures['by_words_us']:.3f} us.",
        f"All shipped tables read and checked: {check:.2f} s, required {CHECK_S:.0f}: {_met(check < CHECK_S)}.",
    ]


def _met(met: bool) -> str:
    return "met" if met else "NOT met"


def _by_index(link: Slice, count: int) -> None:
    cells, stride = link.cells, link.strides["state"]
    state, rest = link.positions["state"]["accepted"], 0
    for _ in repeat(None, count):
        cells[state * stride + rest]


def _by_words(link: Slice, count: int) -> None:
    for _ in repeat(None, count):
        link.decide(state="accepted", already_settled="no", attempts="below")


def _seconds(way: Callable[[Slice, int], None], link: Slice, count: int) -> float:
    began = time.process_time()
    way(link, count)
    return time.process_time() - began


def _allocated(link: Slice) -> int:
    """The most that decisions by index hold at any moment beyond what one call of the function does."""
    tracemalloc.start()
    try:
        peaks = []
        for count in (1, 1, 1_000):  # the first call warms up
            tracemalloc.reset_peak()
            before, _ = tracemalloc.get_traced_memory()
            _by_index(link, count)
            peaks.append(tracemalloc.get_traced_memory()[1] - before)
        return peaks[2] - peaks[1]
    finally:
        tracemalloc.stop()


def _check_seconds() -> float:
    began = time.process_time()
    _, problems = load_rules()
    assert not problems
    return time.process_time() - began


if __name__ == "__main__":
    json.dump(decisions(), sys.stdout, indent=1)
    print()
