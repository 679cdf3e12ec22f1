"""Which process this is, in words that another process of the same machine can check: has it ended?

A dead owner of a shard is followed at once where its death can be seen, and not a lease later. Linux's /proc tells it:
the machine's boot, the process-number space (a container has its own), the process and when it started, in clock ticks
since boot; numbers are used again, that pair is not. Where nothing is certain the answer is no: the lease decides.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

Process = Mapping[str, Any]
_PROC = Path("/proc")


class ProcessLiveness(Protocol):
    """This process, and whether other processes have ended."""

    def this_process(self) -> Process:
        """This process, for a record (docs/records.md "Lease")."""
        ...

    def gone(self, process: Process) -> bool:
        """That process has certainly ended."""
        ...


class SystemLiveness:
    """By /proc, where there is one."""

    def __init__(self) -> None:
        self._here = {"host": socket.gethostname(), "pid": os.getpid(), **_space(), "start": _start(os.getpid())}

    def this_process(self) -> Process:
        return self._here

    def sees(self, process: Process) -> bool:
        """Whether its number means the same here."""
        here = self._here
        return bool(here["boot"]) and all(process.get(name) == here[name] for name in ("boot", "space"))

    def gone(self, process: Process) -> bool:
        if not self.sees(process):
            return False
        pid, start = process.get("pid"), process.get("start")
        if not isinstance(pid, int) or pid <= 0 or not start:
            return False
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            pass  # another user's process, and alive
        now = _start(pid)
        return now == -1 or (now > 0 and now != start)


def _space() -> dict[str, str]:
    """The space in which process numbers mean the same; empty where it is not known."""
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        return {"boot": boot, "space": str((_PROC / "self/ns/pid").readlink())}
    except OSError:
        return {"boot": "", "space": ""}


def _start(pid: int) -> int:
    """When the process started; 0 when that is not to be learnt, -1 when it has ended and was not yet reaped."""
    try:
        fields = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return -1 if fields[0] in "ZX" else int(fields[19])
