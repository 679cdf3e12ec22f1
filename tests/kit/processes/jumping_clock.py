"""The time of day of one process, which jumps at a word; its monotonic time goes on."""

from __future__ import annotations

import mmap
from ctypes import c_int64
from pathlib import Path

from tests.kit.processes.preloaded import PRELOAD, built

SOURCE = Path(__file__).with_name("jumping_clock.c")


class JumpingClock:
    """`environment` goes to the process; then `jump`, as often as it takes. A later process goes on where it is."""

    def __init__(self, directory: Path) -> None:
        self._file = directory / "clock-jump"
        self._file.write_bytes(bytes(8))
        self._library = built(SOURCE, directory)
        self.environment = {PRELOAD: str(self._library), "CLOCK_JUMP": str(self._file)}
        with self._file.open("r+b") as file:
            self._ns = c_int64.from_buffer(mmap.mmap(file.fileno(), 8))  # one store: no reader sees half of it

    def jump(self, ahead_s: float) -> None:
        """From now on the time of day is so many seconds ahead of the machine's; behind it below 0."""
        self._ns.value = round(ahead_s * 1e9)

    def moves(self, pid: int) -> bool:
        """Whether that process has the library, which ends a process that cannot read the file."""
        return str(self._library) in Path(f"/proc/{pid}/maps").read_text()
