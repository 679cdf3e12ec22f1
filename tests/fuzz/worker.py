"""`python -m tests.fuzz.worker --seed N --seconds S --found DIR`: breeds cases and carries them out, in a process of
its own: C can bring it down, and a case can run for ever.

Every case is written to `DIR/current.case` before it begins, so its parent knows what it died of; a case
that takes `HANG_S` of processor ends it by SIGVTALRM. What is found is made smaller, written to `DIR/NNN.case`, and the
work goes on. A line of JSON a second says how far it is.
"""

from __future__ import annotations

import argparse
import faulthandler
import gc
import itertools
import json
import os
import signal
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import psutil

from gateway.amqp.link_ends import Link
from gateway.session.connection import Connection
from gateway.session.gateway import Gateway
from native_backend.realm import Realm
from tests.fuzz.breeding import Breeder
from tests.fuzz.case_gateway import CaseGateway, Wrong, listen_to_logs
from tests.fuzz.shrinking import smaller
from tests.fuzz.steps import Case, cases_in

HERE = Path(__file__).parent
CORPUS, REGRESSIONS = HERE / "corpus", HERE / "regressions"
HANG_S = 20.0  # of processor time; the machine may be slow, a case takes milliseconds
LOOK_CASES = 200  # from one look at what is alive to the next
NAME_CHARACTERS = 60  # of what was wrong: a second case of the same is not kept


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--cases", type=int, default=0, help="end after so many, instead of when the time is over")
    parser.add_argument("--found", type=Path, required=True)
    arguments = parser.parse_args()
    start_watching()
    return Worker(arguments.seed, arguments.found).work(arguments.seconds, arguments.cases)


def start_watching() -> None:
    """A case that hangs ends the process, with a traceback; C that crashes shows where."""
    faulthandler.enable()
    signal.signal(signal.SIGVTALRM, signal.SIG_DFL)
    faulthandler.register(signal.SIGVTALRM, chain=True)
    listen_to_logs()


def what_is_wrong(case: Case) -> str:
    """Empty where nothing is."""
    signal.setitimer(signal.ITIMER_VIRTUAL, HANG_S)
    try:
        CaseGateway(case.gateway).carry_out(case)
    except Wrong as wrong:
        return str(wrong)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return ""


class Worker:
    """See the module's docstring."""

    def __init__(self, seed: str, directory: Path) -> None:
        self._seed, self._directory = seed, directory
        self._known: set[str] = set()
        self._process = psutil.Process()
        self.cases = 0

    def work(self, seconds: float, cases: int = 0) -> int:
        breeder = Breeder(cases_in(CORPUS) + cases_in(REGRESSIONS))
        end, reported_s = time.monotonic() + seconds, 0.0
        current = os.open(self._directory / "current.case", os.O_WRONLY | os.O_CREAT)
        for number in itertools.count():
            case = breeder.breed(Random(f"{self._seed}:{number}"))
            text = str(case).encode()
            os.ftruncate(current, 0)
            os.pwrite(current, text, 0)
            wrong = what_is_wrong(case)
            self.cases += 1
            if wrong:
                self._keep(case, wrong)
            if number % LOOK_CASES == 0:
                self._look_at_what_is_alive()
            over = self.cases >= cases if cases else time.monotonic() > end
            if time.monotonic() - reported_s > 1.0 or over:
                reported_s = time.monotonic()
                print(json.dumps(self._figures()), flush=True)
            if over:
                return 0
        return 1

    def _keep(self, case: Case, wrong: str) -> None:
        name = wrong.splitlines()[0][:NAME_CHARACTERS]
        if name in self._known:
            return
        self._known.add(name)
        small = smaller(case, lambda other: what_is_wrong(other).startswith(name[:40]))
        small.about = f"seed {self._seed}\n{wrong.splitlines()[0]}"
        (self._directory / f"{len(self._known):03}.txt").write_text(wrong)  # the traceback names paths of this machine
        (self._directory / f"{len(self._known):03}.case").write_text(str(small))

    def _look_at_what_is_alive(self) -> None:
        """Of every gateway that was, nothing is left."""
        gc.collect()
        alive = Counter(type(instance).__name__ for instance in gc.get_objects() if isinstance(instance, KEPT))
        if sum(alive.values()) > len(KEPT) * 2:
            self._keep(Case(), f"still alive: {dict(alive)}")

    def _figures(self) -> dict[str, Any]:
        with self._process.oneshot():
            memory = self._process.memory_info().rss
        return {"cases": self.cases, "rss": memory, "fds": self._process.num_fds(), "found": len(self._known)}


KEPT = (Gateway, Realm, Connection, Link)

if __name__ == "__main__":
    raise SystemExit(main())
