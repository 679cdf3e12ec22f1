"""Opening the realm: `serve` waits for a log that is not there yet, and as standby while another gateway owns it.

What waits is said on stderr, once and then every 30 s. SIGTERM and SIGINT end the wait at once: nothing is open yet
that kill -9 could harm. Errors: `LogError` for what waiting does not mend: rights, formats, settings. May import:
`native_backend`, the standard library.
"""

from __future__ import annotations

import logging
import os
import signal
import time
from types import FrameType

from native_backend.lease import Owner
from native_backend.log import Failure, LogError
from native_backend.realm import Realm

log = logging.getLogger("realmgate.opening")

RETRY_S = 1.0
REMIND_S = 30.0
_WAITED_FOR = ("unavailable", "indeterminate", "fenced")  # fenced: somebody else was faster


def open_realm(realm: Realm, where: str) -> None:
    """Open `realm`, whatever that takes. Blocks; raises LogError."""
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, _end)
    last, told_s = "", 0.0
    while True:
        try:
            return realm.open(_standby)
        except LogError as error:
            if error.failure.cause not in _WAITED_FOR:
                raise
            words = _words(error.failure, where)
            if words != last or time.monotonic() - told_s > REMIND_S:
                last, told_s = words, time.monotonic()
                log.warning("%s", words)
        time.sleep(RETRY_S)


def _standby(owner: Owner) -> None:
    log.warning("standby: %s owns the realm; this gateway listens when that one ends", owner)


def _words(failure: Failure, where: str) -> str:
    if failure.cause == "fenced":
        return f"{where}: {failure.detail}; trying again"
    return f"{where} does not answer ({failure.detail}); trying again until it does: start it, or correct realm"


def _end(number: int, _: FrameType | None) -> None:
    log.info("%s before the realm was open: nothing to close", signal.Signals(number).name)
    logging.shutdown()
    os._exit(0)  # a call to the log may be under way on another thread: nobody waits for it
