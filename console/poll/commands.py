"""Commands of `realmgate` as processes of their own: what the console reads of a realm, and what it has changed there.

The console itself opens no realm. One command runs at a time, `COMMANDS_WAITING` wait; each has a bound on its time and
on what it prints. Errors: `NoAnswer`, in the command's own words.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from console.limits import ANSWER_BYTES, COMMANDS_WAITING, READ_TIMEOUT_S
from console.poll.fetch import NoAnswer
from console.poll.priority import Foreground
from gateway.verdict.answers import text

_WORDS: Final = 4_096  # octets of what it complains of
_DONE: Final = 0


class Commands:
    """Those of one configuration. `foreground`: where they run if they must not give way with the console."""

    def __init__(self, config: Path, foreground: Foreground | None = None) -> None:
        self._config, self._foreground = config, foreground
        self._turn = asyncio.Lock()
        self._waiting = 0

    async def run(self, *options: str, operands: Sequence[str] = (), timeout_s: float = READ_TIMEOUT_S) -> bytes:
        """What it prints. `operands` may begin with anything. Raises NoAnswer: refused, too long, too many."""
        if self._waiting > COMMANDS_WAITING:
            raise NoAnswer("other commands are under way: ask again in a few seconds")
        marked = ["--", *operands] if operands else []
        self._waiting += 1
        try:
            async with self._turn:
                work = self._run([*options, f"--config={self._config}", *marked], timeout_s)
                return await (work if self._foreground is None else self._foreground.run(work))
        finally:
            self._waiting -= 1

    async def _run(self, words: Sequence[str], timeout_s: float) -> bytes:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-P", "-m", "gateway.cli.main", *words,
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        assert process.stdout is not None and process.stderr is not None
        try:
            async with asyncio.timeout(timeout_s):
                printed, complaint = await asyncio.gather(
                    _all(process.stdout, ANSWER_BYTES), _all(process.stderr, _WORDS, cut=True)
                )
                code = await process.wait()
        except TimeoutError:
            raise NoAnswer(f"realmgate {words[0]} took longer than {timeout_s:.0f} s: choose less") from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if code != _DONE:
            raise NoAnswer(_complaint(complaint))
        return printed


async def _all(stream: asyncio.StreamReader, most: int, *, cut: bool = False) -> bytes:
    """To its end. Raises NoAnswer for more than `most`, unless it is cut there."""
    octets = bytearray()
    while part := await stream.read(65_536):
        if len(octets) + len(part) > most and not cut:
            raise NoAnswer(f"the answer is larger than {most:,} octets: choose less")
        octets += part[: max(0, most - len(octets))]
    return bytes(octets)


def _complaint(words: bytes) -> str:
    output = words.decode("utf-8", "replace").strip()
    lines = [line.removeprefix("realmgate: ") for line in output.splitlines()]
    return text(" ".join(lines)) or "the command failed without a word"
