"""Libraries in C that a process is started with, so that the world it sees is not the real one."""

from __future__ import annotations

import subprocess
from pathlib import Path

PRELOAD = "LD_PRELOAD"


def built(source: Path, directory: Path) -> Path:
    """The library of one file of C, in `directory`. Raises CalledProcessError when it does not compile."""
    library = directory / source.with_suffix(".so").name
    command = ["gcc", "-O1", "-Wall", "-Werror", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"]
    subprocess.run(command, check=True)
    return library


def together(*environments: dict[str, str]) -> dict[str, str]:
    """One environment with all of their libraries."""
    libraries = [environment[PRELOAD] for environment in environments]
    merged = {name: value for environment in environments for name, value in environment.items()}
    return {**merged, PRELOAD: ":".join(libraries)}
