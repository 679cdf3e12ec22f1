"""A gateway process without some of its facts, or one that says how long it was busy with them.

    python -m bench.facts.process FACTS serve --config CONFIG
    python -m bench.facts.process FILE serve --config CONFIG

FACTS: names of `recorded.FACTS` with commas between, whose recording is taken out; `none`: all is as it is. FILE has a
slash in it: at each SIGUSR1 a line of JSON is appended, {FACT: [nanoseconds of processor time, times], ...}.
"""

from __future__ import annotations

import json
import logging
import signal
import sys
import time
from pathlib import Path
from typing import Final

from bench.facts.cut import install, time_statements
from bench.facts.recorded import FACTS, RECORDED, TIMED
from gateway.cli.main import main

EMPTY, WHOLE = "empty", "whole"
"""A statement that does nothing: what the clock says of it, and what timing it takes in all."""
EMPTIES: Final = 1_000


def take_out(words: str) -> None:
    """Raises LookupError where a name is none, or something that is to be taken out is not there."""
    names = set() if words == "none" else {*words.split(",")}
    if wrong := names - {*FACTS}:
        raise LookupError(f"no facts: {', '.join(sorted(wrong))}; there are {', '.join(FACTS)}")
    install(RECORDED)()  # both kinds of process have done the same work
    install([cut for cut in RECORDED if cut.fact in names])
    logging.getLogger("bench.facts").warning("facts that are not recorded: %s", words)


class Spent:
    """Nanoseconds of the thread that records, and how often, by fact."""

    def __init__(self) -> None:
        self._sums = {fact: [0, 0] for fact in (*FACTS, EMPTY, WHOLE)}

    def add(self, fact: str, nanoseconds: int) -> None:
        spent = self._sums[fact]
        spent[0] += nanoseconds
        spent[1] += 1

    def measure_empty(self) -> None:
        began = time.thread_time_ns()
        for _ in range(EMPTIES):
            begin = time.thread_time_ns()
            try:
                pass
            finally:
                self.add(EMPTY, time.thread_time_ns() - begin)
        self.add(WHOLE, (time.thread_time_ns() - began) // EMPTIES)

    def document(self) -> dict[str, list[int]]:
        return {fact: [*spent] for fact, spent in self._sums.items()}


def time_all(path: Path) -> None:
    spent = Spent()
    time_statements(TIMED, time.thread_time_ns, spent.add)

    def tell(*_: object) -> None:
        spent.measure_empty()
        with path.open("a") as file:
            file.write(f"{json.dumps(spent.document())}\n")

    signal.signal(signal.SIGUSR1, tell)


if __name__ == "__main__":
    which = sys.argv.pop(1)
    if "/" in which:
        time_all(Path(which))
    else:
        take_out(which)
    main()
