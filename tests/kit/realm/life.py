"""Whether a process of a test still lives: they are all one process of the system."""

from __future__ import annotations

from typing import ClassVar

from native_backend.journal.process_liveness import Process, SystemLiveness


class Life(SystemLiveness):
    """Several realm processes of a test live in one process; that one was killed shows as the end of a process does."""

    ended: ClassVar[set[str]] = set()

    def __init__(self, run: str) -> None:
        super().__init__()
        self._run = run

    def this_process(self) -> Process:
        return {**super().this_process(), "life": self._run}

    def gone(self, process: Process) -> bool:
        return process.get("life") in self.ended or super().gone(process)
