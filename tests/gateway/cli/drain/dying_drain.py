"""`realmgate` whose drain ends itself with SIGKILL: `DIES_AT=POINT:BATCH python -m ... ARGUMENTS`.

The product knows nothing of it: functions are replaced before it starts. `BATCH` counts transactions.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Any, Final

from gateway.cli.drain.destination import Destination
from gateway.cli.drain.source import Source
from gateway.cli.drain.transaction import Transactions
from gateway.cli.main import main

VARIABLE: Final = "DIES_AT"
POINTS: Final = ("posted", "stored", "settled")
_batch = 0


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def arm(point: str, batch: int) -> None:
    """Let it die there."""
    owner, name = {
        "posted": (Transactions, "_await_outcomes"),
        "stored": (Destination, "store"),
        "settled": (Source, "settle"),
    }[point]
    original: Callable[..., Any] = getattr(owner, name)

    def call(*arguments: Any) -> None:
        global _batch
        original(*arguments)
        counts = point != "settled" or arguments[-1]  # nothing known is settled, too
        _batch += bool(counts)
        if counts and _batch == batch:
            if point == "settled":
                arguments[0]._peer.keep_alive()  # it is on its way
            _die()

    setattr(owner, name, call)


if __name__ == "__main__":
    moment, _, at = os.environ.get(VARIABLE, "").partition(":")
    if moment:
        arm(moment, int(at))
    sys.exit(main())
