"""`realmgate`, forked off a process that has imported it already, for tests that do not look at how it starts.

    python -m tests.kit.processes.forking SOCKET

A suite starts hundreds of gateways and commands; each would take a third to half a second of processor time for its
imports and the shipped tables alone. This process imports and compiles them once, and forks for each request: a JSON
object `argv`, `cwd`, `environ` and `files` (the limits of descriptors), with three descriptors: stdout, stderr, and
where the exit code is written as text. It answers with the pid. What a forked command imported besides, of the product,
is imported here before the next fork. It ends when its socket does.

It starts no thread, since a fork would not have it. The forked process is `gateway.cli.main.main` with those words, and
ends as an interpreter does.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import resource
import select
import socket
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.kit.tables.shipped import keep_for_forks

_WORDS_MAX = 1 << 20
_OURS = ("gateway.", "mappings.", "native_backend.", "transformers.")
_FIRST = ("gateway.serve.serve", "gateway.cli.node")


@dataclass(slots=True)
class _Child:
    pid: int
    answer: int  # where its exit code goes
    imported: int  # where it writes what it imported


class Forking:
    """Forks for the peer of `requests` until that is gone."""

    def __init__(self, requests: socket.socket) -> None:
        self._requests = requests
        self._children: dict[int, _Child] = {}  # by the descriptor that is ready when one has ended
        self._poll = select.poll()
        self._poll.register(requests, select.POLLIN)
        keep_for_forks()
        self._import(_FIRST)

    def serve(self) -> bool:
        """False when the peer is gone; True in a forked process, which has its own argv, stdout and stderr then."""
        while True:
            for ready, _ in self._poll.poll():
                if ready != self._requests.fileno():
                    self._ended(ready)
                    continue
                words, descriptors, _, _ = socket.recv_fds(self._requests, _WORDS_MAX, 3)
                if not words:
                    return False
                if self._fork(json.loads(words), descriptors):
                    return True

    def _fork(self, request: dict[str, Any], descriptors: list[int]) -> bool:
        """True in the forked process."""
        gc.collect()
        gc.freeze()  # a collection in a forked process writes to each object: it would copy all of them
        theirs, own = os.pipe()
        os.set_blocking(theirs, False)  # a process that the forked one started may hold the other end
        pid = os.fork()
        if pid == 0:
            _become(request, descriptors, own)
            return True
        stdout, stderr, answer = descriptors
        for descriptor in (stdout, stderr, own):
            os.close(descriptor)
        handle = os.pidfd_open(pid)
        self._children[handle] = _Child(pid, answer, theirs)
        self._poll.register(handle, select.POLLIN)
        self._requests.send(str(pid).encode())
        return False

    def _ended(self, handle: int) -> None:
        child = self._children.pop(handle)
        _, status = os.waitpid(child.pid, 0)
        self._poll.unregister(handle)
        os.write(child.answer, str(os.waitstatus_to_exitcode(status)).encode())
        os.close(child.answer)
        os.close(handle)
        with contextlib.suppress(BlockingIOError):
            self._import(os.read(child.imported, _WORDS_MAX).decode().split())
        os.close(child.imported)

    def _import(self, names: list[str] | tuple[str, ...]) -> None:
        for name in names:
            importlib.import_module(name)
        threads = len([*Path("/proc/self/task").iterdir()])
        assert threads == 1, f"{threads} threads after the import of {names}: a fork would not have them"


def _become(request: dict[str, Any], descriptors: list[int], imported: int) -> None:
    """Take on what the request says; keep no descriptor but these."""
    stdout, stderr, _ = descriptors
    os.dup2(stdout, 1)
    os.dup2(stderr, 2)
    os.dup2(imported, 3, inheritable=False)
    os.closerange(4, max(int(path.name) for path in Path("/proc/self/fd").iterdir()) + 1)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environ"])
    resource.setrlimit(resource.RLIMIT_NOFILE, request["files"])
    sys.argv[:] = request["argv"]
    known = set(sys.modules)

    def say() -> None:
        names = [name for name in sys.modules if name.startswith(_OURS) and name not in known]
        os.write(3, " ".join(names).encode())

    atexit.register(say)


if __name__ == "__main__":
    sys.path[0] = str(Path(sys.executable).parent)  # as in the program itself
    if Forking(socket.socket(fileno=int(sys.argv[1]))).serve():
        from gateway.cli.main import main

        main()
