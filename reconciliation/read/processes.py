"""Has the process of a run ended? Where it ran on this machine, Linux's /proc tells.

A run names its process in the lease: the machine's boot, the space of process numbers (a container has its own), its
number, and when it started, in clock ticks since boot. Where nothing is certain the answer is no.
Source: docs/records.md "Lease", proc(5).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_PROC = Path("/proc")


def has_ended(process: Mapping[str, Any]) -> bool:
    """That process is certainly no more."""
    pid, started = process.get("pid"), process.get("start")
    if not isinstance(pid, int) or pid <= 0 or not started or not _is_of_this_machine(process):
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OverflowError:
        return False  # no number of a process
    except PermissionError:
        pass  # another user's, and alive
    try:
        fields = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return False
    return fields[0] in "ZX" or int(fields[19]) != started


def _is_of_this_machine(process: Mapping[str, Any]) -> bool:
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        space = str((_PROC / "self/ns/pid").readlink())
    except OSError:
        return False
    return bool(boot) and process.get("boot") == boot and process.get("space") == space
