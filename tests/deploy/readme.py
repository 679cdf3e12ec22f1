"""README.md, and its lines as commands."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.kit.processes.gateway import REALMGATE

ROOT = Path(__file__).parents[2]


README = (ROOT / "README.md").read_text()


COMMAND_S = 300  # a reconciliation, on cores that others use


def ran(line: str, directory: Path) -> subprocess.CompletedProcess[str]:
    """As it is written, with `realmgate` on the path."""
    environment = {"PATH": f"{REALMGATE.parent}:/usr/local/bin:/usr/bin:/bin"}
    return subprocess.run(
        line, shell=True, cwd=directory, env=environment, capture_output=True, text=True, timeout=COMMAND_S, check=False
    )  # fmt: skip
