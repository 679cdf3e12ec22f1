"""`realmgate` that ends itself with SIGKILL while it moves messages: `DIES_AT=POINT:PIECE python -m ... ARGUMENTS`.

The product knows nothing of it: functions are replaced before it starts. `PIECE` counts what was given to the journal.
"""

from __future__ import annotations

import functools
import os
import signal
import sys
from collections.abc import Callable
from typing import Any, Final

from gateway.cli import owner_client
from gateway.cli.main import main
from native_backend.journal.journal import Journal
from native_backend.operations.move import Move

VARIABLE: Final = "DIES_AT"
PIECES: Final = ("before the journal", "journal begun", "journal has it", "settled")
ASKED: Final = "asked"
_given = 0


def arm(point: str, piece: int) -> None:
    """Let it die there."""

    def due(name: str) -> None:
        if point == name and _given >= piece:
            os.kill(os.getpid(), signal.SIGKILL)

    def wrapped(original: Callable[..., Any], before: str = "", after: str = "") -> Callable[..., Any]:
        @functools.wraps(original)
        def call(*arguments: Any, **named: Any) -> Any:
            if before:
                due(before)
            result = original(*arguments, **named)
            if after:
                due(after)
            return result

        return call

    def counted(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def call(*arguments: Any) -> Any:
            global _given
            _given += 1
            due(PIECES[0])
            return original(*arguments)

        return call

    for owner, name, replaced in (
        (Move, "_end_events", counted(Move._end_events)),
        (Journal, "_transact", wrapped(Journal._transact, after=PIECES[1])),
        (Journal, "_stored", wrapped(Journal._stored, before=PIECES[2])),
        (Move, "settled", wrapped(Move.settled, after=PIECES[3])),
        (owner_client, "read_tail", wrapped(vars(owner_client)["read_tail"], before=ASKED)),
    ):
        setattr(owner, name, replaced)


if __name__ == "__main__":
    moment, _, at = os.environ.get(VARIABLE, "").partition(":")
    if moment:
        arm(moment, int(at))
    sys.exit(main())
