"""A process that `forking` makes: `subprocess.Popen`, as far as tests need it.

    use()                                             # once, by the suite: benchmarks measure the program as it is
    process = ForkedProcess(["serve", "--config", "gateway.yaml"], stderr=log)
    process.stdout.readline(); process.send_signal(signal.SIGTERM); process.wait(60)

Errors: `RuntimeError` or `ConnectionError` where the process that forks is gone.
"""

from __future__ import annotations

import atexit
import json
import os
import resource
import select
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO, Any

_WORD_BYTES_MAX = 32
_FIRST_WORD = str(Path(sys.executable).with_name("realmgate"))
_ROOT = Path(__file__).parents[3]
_turn = threading.Lock()


class _Forker:
    """The process that forks, from the first request on."""

    is_used = False
    requests: socket.socket | None = None


def use() -> None:
    """From now on."""
    _Forker.is_used = True


def is_used() -> bool:
    return _Forker.is_used


class ForkedProcess:
    """`realmgate WORDS`. Without `stdout`, the attribute of that name reads what the process prints."""

    def __init__(self, words: list[str], stderr: IO[Any], stdout: IO[Any] | None = None) -> None:
        self.returncode: int | None = None
        self.stdout: IO[str] | None = None
        self._answer, answer = os.pipe()
        if stdout is None:
            source, sink = os.pipe()
            self.stdout = os.fdopen(source)
        else:
            sink = os.dup(stdout.fileno())
        try:
            self.pid = _fork(words, [sink, stderr.fileno(), answer])
        finally:
            os.close(sink)
            os.close(answer)

    def poll(self) -> int | None:
        """Its exit code once it has ended; negative where a signal ended it."""
        return self.returncode if self.returncode is not None or not self._has_ended(0) else self._take()

    def wait(self, timeout: float | None = None) -> int:
        """Errors: `subprocess.TimeoutExpired`."""
        if self.returncode is not None:
            return self.returncode
        if not self._has_ended(timeout):
            raise subprocess.TimeoutExpired([_FIRST_WORD], timeout or 0.0)
        return self._take()

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _has_ended(self, timeout_s: float | None) -> bool:
        poll = select.poll()
        poll.register(self._answer, select.POLLIN)
        return bool(poll.poll(None if timeout_s is None else timeout_s * 1000))

    def _take(self) -> int:
        code = os.read(self._answer, _WORD_BYTES_MAX)
        os.close(self._answer)
        if not code:
            raise RuntimeError(f"the process that forked {self.pid} is gone")
        self.returncode = int(code)
        return self.returncode


def _fork(words: list[str], descriptors: list[int]) -> int:
    """Its pid."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)
    request = {"argv": [_FIRST_WORD, *words], "cwd": str(Path.cwd()), "environ": dict(os.environ), "files": files}
    with _turn:
        requests = _Forker.requests = _Forker.requests or _begin()
        socket.send_fds(requests, [json.dumps(request).encode()], descriptors)
        answer = requests.recv(_WORD_BYTES_MAX)
    if not answer:
        raise RuntimeError("the process that forks is gone")
    return int(answer)


def _begin() -> socket.socket:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.kit.processes.forking", str(theirs.fileno())],
        pass_fds=[theirs.fileno()],
        cwd=_ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    theirs.close()

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)
    return ours
