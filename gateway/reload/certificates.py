"""The certificates while serving: all are read again together, on another thread, and shown to the peers that connect
from then on (`gateway/reload/watched_files.py`). Peers that are connected notice nothing.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Iterable
from concurrent.futures import Executor
from pathlib import Path

from gateway.config.tls import TlsSettings, context, ends
from gateway.reload.watched_files import WatchedFiles, signature_of
from native_backend.clock import Clock

log = logging.getLogger("realmgate.tls")


class Certificates(WatchedFiles):
    """One gateway's. `ends`: seconds since 1970, by field (`gateway/config/tls.py`)."""

    kind = "certificates"
    kept = "these certificates are not used; the previous ones stay active"

    def __init__(self, settings: TlsSettings, workers: Executor, clock: Clock) -> None:
        self._settings = settings
        self._workers = workers
        super().__init__(log, clock, signature_of(settings.files))
        self.context, self.ends = _read(settings)

    def files(self) -> Iterable[Path]:
        return self._settings.files

    async def read(self) -> list[str]:
        try:
            read = asyncio.get_running_loop().run_in_executor(self._workers, _read, self._settings)
            self.context, self.ends = await read
        except (ValueError, OSError) as error:
            return [str(error)]
        log.info("the certificates were read again")
        return []


def _read(settings: TlsSettings) -> tuple[ssl.SSLContext, dict[str, float]]:
    return context(settings), ends(settings)
