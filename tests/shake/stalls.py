"""What a busy machine does to a test, made on purpose: a process that stands still at times, cores that are taken."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

WHILE_IT_RUNS_S = (1.0, 2.0)


@contextmanager
def stalls(pid: int, stall_s: tuple[float, float], seed: int) -> Iterator[None]:
    """The process stands still for so many seconds (at least, at most), again and again; at the end it runs."""
    chosen, over = random.Random(seed), threading.Event()

    def stall() -> None:
        while not over.wait(chosen.uniform(*WHILE_IT_RUNS_S)):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
                over.wait(chosen.uniform(*stall_s))
                os.kill(pid, signal.SIGCONT)

    thread = threading.Thread(target=stall, name="stalls")
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@contextmanager
def busy(loops: int) -> Iterator[None]:
    """So many processes beside that never rest."""
    processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(loops)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()
