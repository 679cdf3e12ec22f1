"""`--since`, as the command line takes it."""

from __future__ import annotations

import argparse
from datetime import datetime
from typing import Final

from native_backend.clock import SystemClock

_SECONDS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}


def since_us(written: str) -> int:
    """10m: that long ago; or a time with its zone. Microseconds since 1970."""
    if written[:-1].isdigit() and written[-1] in _SECONDS:
        return SystemClock().epoch_us() - int(written[:-1]) * _SECONDS[written[-1]] * 1_000_000
    try:
        at = datetime.fromisoformat(written)
    except ValueError:
        at = None
    if at is None or at.tzinfo is None:
        raise argparse.ArgumentTypeError(f"{written} is no time: write 30s, 10m, 2h, 1d, or 2026-11-23T22:00:00Z")
    return int(at.timestamp() * 1e6)
