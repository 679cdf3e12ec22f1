"""Chromium, driven over pages by playwright-core, with axe (`browser/drive.js`): installed by npm from its lock file
into `.cache/console`. As a program: installs it, before a test asks for it.

Errors: `RuntimeError` with its own words.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

from tests.kit.patience import HANG_S
from tests.kit.processes.load_client import CACHE, call, lock

HERE = Path(__file__).parent / "browser"
_SOURCES = ("package.json", "package-lock.json", ".npmrc")
_RUN_S = 3 * HANG_S  # 28 pages, each with axe


@cache
def installed() -> Path:
    """Where its packages are."""
    directory = CACHE / "console" / "browser"
    digest = hashlib.sha256(b"".join((HERE / name).read_bytes() for name in _SOURCES)).hexdigest()
    stamp = directory / "sources.sha256"
    with lock("console-browser"):
        if not stamp.exists() or stamp.read_text() != digest:
            shutil.rmtree(directory, ignore_errors=True)
            directory.mkdir(parents=True)
            for name in _SOURCES:
                shutil.copy(HERE / name, directory)
            options = ("--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
            call(["npm", "ci", *options, "--prefix", str(directory)], cwd=directory)
            stamp.write_text(digest)
    return directory / "node_modules"


def shots(room: str) -> Path:
    """Where the pictures of a room's pages are kept: what a run leaves to look at."""
    return CACHE / room / "shots"


def beside(*arguments: str, cookie: str = "") -> subprocess.Popen[str]:
    """One command of `drive.js`, running; its report is its standard output. `cookie`: of a user who has logged in."""
    environment = {**os.environ, "NODE_PATH": str(installed()), "COOKIE": cookie}
    command = ["node", str(HERE / "drive.js"), *arguments]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def report_of(process: subprocess.Popen[str]) -> Any:
    """When it has come to its end. Raises RuntimeError."""
    out, complaints = process.communicate(timeout=_RUN_S)
    if process.returncode != 0:
        raise RuntimeError(f"drive.js failed ({process.returncode}):\n{out}{complaints}")
    return json.loads(out)


def drive(*arguments: str, cookie: str = "") -> Any:
    return report_of(beside(*arguments, cookie=cookie))


if __name__ == "__main__":
    installed()
