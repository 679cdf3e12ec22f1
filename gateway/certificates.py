"""The certificates while serving: when a file changes, or on SIGHUP, all are read anew, on another thread, and shown to
whoever connects from then on. Nobody who is connected notices. Files with problems change nothing; they are logged
once, and shown in /health.

A change is acted on when it has been seen twice alike: certificate and key are two files, written one after the other.
May import: `gateway.tls_settings`, asyncio, ssl.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from concurrent.futures import Executor

from gateway.tls_settings import TlsSettings, context

log = logging.getLogger("realmgate.tls")

Signature = tuple[tuple[int, int, int] | None, ...]


class Certificates:
    """One gateway's. `look` is called about once a second. `read`, `refused`: how often, the start not counted."""

    def __init__(self, settings: TlsSettings, workers: Executor) -> None:
        self.context = context(settings)
        self.problem = ""  # of the last try
        self.read = self.refused = 0
        self._settings = settings
        self._workers = workers
        self._tried = self._seen = signature_of(settings)
        self._reading = False

    def look(self) -> None:
        """Once in a while: has a file changed?"""
        signature, before = signature_of(self._settings), self._seen
        self._seen = signature
        if self._tried != signature == before:
            self.request()

    def request(self) -> None:
        """Read soon."""
        if self._reading:
            return
        self._reading, self._tried = True, signature_of(self._settings)
        reading = asyncio.get_running_loop().run_in_executor(self._workers, _read, self._settings)
        reading.add_done_callback(self._have_read)

    def _have_read(self, reading: asyncio.Future[ssl.SSLContext | str]) -> None:
        self._reading = False
        if reading.cancelled():
            return
        answer = reading.result()
        if isinstance(answer, str):
            self.refused += 1
            if answer != self.problem:
                log.error("these certificates are not used, those read before stay in force: %s", answer)
            self.problem = answer
            return
        self.context, self.problem = answer, ""
        self.read += 1
        log.info("the certificates were read anew")


def _read(settings: TlsSettings) -> ssl.SSLContext | str:
    try:
        return context(settings)
    except ValueError as error:
        return str(error)


def signature_of(settings: TlsSettings) -> Signature:
    """What tells that a file has changed; None for one that is not there."""
    found: list[tuple[int, int, int] | None] = []
    for path in settings.files:
        try:
            status = path.stat()
        except OSError:
            found.append(None)
        else:
            found.append((status.st_mtime_ns, status.st_size, status.st_ino))
    return tuple(found)
