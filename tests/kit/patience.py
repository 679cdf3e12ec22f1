"""How long a test waits for what must come: one hang limit for all of them, and one factor for a slow machine.

A hang limit ends a test that would wait for ever. It says nothing of speed, and a test that passes never feels it:
`until` returns when the condition holds. `PATIENCE=3` in the environment makes all of them three times as long.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

HANG_S = 120.0 * float(os.environ.get("PATIENCE", "1"))


def pause() -> None:
    time.sleep(0.005)


def until(reached: Callable[[], object], what: str, *, pause: Callable[[], object] = pause) -> None:
    """Return when `reached()` is true; between two looks, `pause`."""
    end = time.monotonic() + HANG_S
    while not reached():
        assert time.monotonic() < end, f"waited {HANG_S:.0f} s in vain for {what}"
        pause()
