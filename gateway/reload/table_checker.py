"""The process that reads and checks tables for a gateway, and the pipes to it.

It is started before the loop takes turns: to start a process holds the loop up for 10 to 30 ms, more where the gateway
is large. One that died meanwhile is started anew by a thread.
Errors: OSError, ValueError and `asyncio.IncompleteReadError` when it dies or says something else.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from typing import Any

import orjson

from gateway.config.limits import TABLES_ANSWER_BYTES


class TableChecker:
    """See the module's docstring. For one question at a time."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self._answers: tuple[subprocess.Popen[bytes], asyncio.StreamReader, asyncio.BaseTransport] | None = None

    def start(self) -> None:
        """Unless it lives. Blocks until it is begun."""
        if self.process is None or self.process.poll() is not None:
            command = (sys.executable, "-P", "-m", "gateway.reload.table_checker_main")
            pipe = subprocess.PIPE  # its end ends the process; a terminal's interrupt is for the gateway to act on
            self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, bufsize=0, start_new_session=True)  # noqa: S603

    async def ask(self, question: dict[str, Any]) -> dict[str, Any]:
        process = self.process
        if process is None or process.poll() is not None:
            self.stop()
            await asyncio.get_running_loop().run_in_executor(None, self.start)
            process = self.process
        assert process is not None and process.stdin is not None
        reader = await self._reader(process)
        process.stdin.write(json.dumps(question).encode() + b"\n")  # far below what a pipe holds
        return dict(orjson.loads(await reader.readuntil(b"\n")))

    async def _reader(self, process: subprocess.Popen[bytes]) -> asyncio.StreamReader:
        if self._answers is None or self._answers[0] is not process:
            reader = asyncio.StreamReader(TABLES_ANSWER_BYTES)
            transport, _ = await asyncio.get_running_loop().connect_read_pipe(
                lambda: asyncio.StreamReaderProtocol(reader), process.stdout
            )
            self._answers = process, reader, transport
        return self._answers[1]

    def stop(self) -> None:
        """What it is asked now has no answer."""
        process, self.process = self.process, None
        answers, self._answers = self._answers, None
        if process is None:
            return
        process.kill()
        process.wait()
        assert process.stdin is not None and process.stdout is not None
        process.stdin.close()
        if answers is not None and answers[0] is process:
            answers[2].close()
        else:
            process.stdout.close()
