"""The C load client (`tests/kit/load/`): built by make, on Debian's libqpid-proton11-dev; and what builds of foreign
clients have in common."""

from __future__ import annotations

import fcntl
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[3]
CACHE = ROOT / ".cache"
BUILD_TIMEOUT_S = 600.0


@cache
def load_client() -> Path:
    """The C load client's path, built if need be."""
    with lock("load"):
        call(["make", "-s", "-C", str(ROOT / "tests" / "kit" / "load")])
    return CACHE / "load" / "load"


@contextmanager
def lock(name: str) -> Iterator[None]:
    """Two test runs may want to build the same."""
    CACHE.mkdir(exist_ok=True)
    with (CACHE / f"{name}.lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def call(command: list[str], cwd: Path | None = None, **environment: str) -> None:
    """Run it. Errors: `RuntimeError` with its own words."""
    environ = {**os.environ, **environment}
    done = subprocess.run(
        command, cwd=cwd, env=environ, capture_output=True, text=True, timeout=BUILD_TIMEOUT_S, check=False
    )
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} failed ({done.returncode}):\n{done.stdout}{done.stderr}")
