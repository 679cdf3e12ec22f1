"""What systemd hears of this process, as sd_notify(3) has it: READY=1, STOPPING=1, WATCHDOG=1 and a STATUS.

Ready is a gateway that serves, and a standby. A gateway that waits for its log says in STATUS what it waits for.
WATCHDOG=1 goes out while `/livez` would answer 200. A thread looks once a second, so a turn has nothing to do for it.
Without NOTIFY_SOCKET in the environment nothing is sent and no thread begins.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import MutableMapping
from threading import Event, Lock, Thread

from gateway.admin.progress import Progress
from gateway.config.limits import TURN_AGE_MAX_S
from gateway.session.gateway import Gateway

log = logging.getLogger("realmgate.serving")

LOOK_S = 1.0
LOOKS_IN_A_WATCHDOG = 3
STATUS_CHARACTERS = 500


class SdNotify:
    """One process's side of it."""

    def __init__(self, environment: MutableMapping[str, str], progress: Progress) -> None:
        """Takes its variables out of `environment`, as they are not for processes that this one starts. `progress`: of
        opening the realm."""
        self._address = environment.pop("NOTIFY_SOCKET", "")
        watchdog_us, pid = environment.pop("WATCHDOG_USEC", ""), environment.pop("WATCHDOG_PID", "")
        is_ours = watchdog_us.isdecimal() and pid in ("", str(os.getpid()))
        self._watchdog_s = int(watchdog_us) / 1_000_000 if is_ours else 0.0
        self._progress = progress
        self._gateway: Gateway | None = None
        self._lock = Lock()  # the last message to systemd holds
        self._last_status, self._is_ready, self._has_failed = "", False, False
        if self._address:
            Thread(target=self._look, name="sd_notify", daemon=True).start()

    def started(self, gateway: Gateway, where: list[str]) -> None:
        """It serves at these addresses."""
        with self._lock:
            self._gateway = gateway
            self._send("READY=1", f"STATUS=serving at {', '.join(where)}")

    def stopping(self) -> None:
        with self._lock:
            self._send("STOPPING=1", "STATUS=closing connections")

    def _look(self) -> None:
        interval_s = min(LOOK_S, self._watchdog_s / LOOKS_IN_A_WATCHDOG or LOOK_S)
        pause = Event()
        while not pause.wait(interval_s):
            with self._lock:
                self._tell()

    def _tell(self) -> None:
        gateway, progress = self._gateway, self._progress
        if gateway is None:
            status = f"STATUS={progress.state}: {progress.words}"
            is_ready = progress.state == "standby"
            if (status, is_ready) != (self._last_status, self._is_ready):
                self._last_status, self._is_ready = status, is_ready
                self._send(*["READY=1"] * is_ready, status)
        if self._watchdog_s and (gateway is None or gateway.clock.monotonic_s() - gateway.turned_s <= TURN_AGE_MAX_S):
            self._send("WATCHDOG=1")

    def _send(self, *lines: str) -> None:
        if not self._address:
            return
        text = "\n".join(line.replace("\n", " ")[:STATUS_CHARACTERS] for line in lines)
        address = f"\0{self._address[1:]}" if self._address.startswith("@") else self._address
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as to:
                to.setblocking(False)  # the loop's thread is one of those that send
                to.sendto(text.encode(), address)
        except OSError as error:
            if not self._has_failed:
                log.warning("NOTIFY_SOCKET %s takes nothing: %s", self._address, error)
            self._has_failed = True
