"""A console on the machine of its gateway gives way: its pages have a core only when nothing else wants one.

What users have changed does not give way: an action has to succeed on a busy machine, too. Linux only; elsewhere the
console keeps its priority.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

log = logging.getLogger("realmgate.console")
T = TypeVar("T")


class Foreground:
    """An event loop in a thread of its own. Make it before `give_way`: threads and processes inherit the priority of
    the thread that starts them."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="foreground", daemon=True).start()

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """What it returns or raises. Where the caller is cancelled, so is the work."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))


def give_way() -> bool:
    """The calling thread, and all that it starts from now on. False: this machine does not allow it."""
    try:
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    except (AttributeError, OSError) as error:
        log.warning("the console keeps its priority beside the gateway: %s", error)
        return False
    return True
