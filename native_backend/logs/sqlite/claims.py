"""Who may transact for a shard: an exclusive lock on a file, let go by the kernel when its process dies.

May import: the standard library, `native_backend.log`.
"""

from __future__ import annotations

import fcntl
import os
import time
from hashlib import blake2b
from pathlib import Path

from native_backend.log import Failure, LogError

RETRY_S = 0.02


class Claims:
    """The shards that this process holds."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._held: dict[str, int] = {}

    def __contains__(self, shard: object) -> bool:
        return shard in self._held

    def claim(self, shard: str, deadline_s: float) -> None:
        """Hold `shard`; waits for another holder to end, and says who it is when it does not."""
        if shard in self._held:
            return
        path = self._directory / f"shard-{blake2b(shard.encode(), digest_size=8).hexdigest()}.lock"
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        deadline = time.monotonic() + deadline_s
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    holder = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip()
                    os.close(descriptor)
                    raise LogError(Failure("fenced", f"shard {shard} is held by process {holder}")) from None
            time.sleep(RETRY_S)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, b"%d\n" % os.getpid(), 0)
        self._held[shard] = descriptor

    def close(self) -> None:
        for descriptor in self._held.values():
            os.close(descriptor)
        self._held.clear()
