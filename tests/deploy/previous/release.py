"""The release before this one, installed beside it: what an upgrade begins with, and what a roll back ends with.

    release = install(tmp_path)             # 20 s; the packages of others come from uv's cache or the index
    gateway = release.gateway(tmp_path / "gateway", embedded_realm(tmp_path))

It is built from the history of this clone, in the versions that its own lock names, without what only its
reconciliation needs. It takes Python 3.11 only, which `.venv` has to be of. Errors: `RuntimeError` with the words of
the command that failed.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.kit.patience import HANG_S
from tests.kit.processes.gateway import GatewayProcess

COMMIT = "4d00c65"
"""The history has no tag yet. This commit is the state of 23 November 2026: the last one before the journal said
`recorded` and `truncated` (ADR 0079), before folders led where the field's word leads, and before a durable had an
owner (ADR 0117) and a lease said its topics (ADR 0120). Put the newest tag here as soon as there is one."""

ROOT = Path(__file__).parents[3]
_UV = Path(sys.executable).with_name("uv")
OWN_PACKAGES = {**os.environ, "PYTHONPATH": ""}  # none of this tree's
_RECONCILES = ("pyspark", "pyarrow")  # 400 MB that no gateway loads


@dataclass(frozen=True, slots=True)
class Release:
    """Where it is installed."""

    directory: Path

    @property
    def program(self) -> Path:
        return self.directory / "bin" / "realmgate"

    def gateway(self, directory: Path, realm: dict[str, Any], **settings: Any) -> GatewayProcess:
        """One of it, not started: as `make_gateway` makes one of this release, without the limits that it has not."""
        directory.mkdir(parents=True, exist_ok=True)
        settings = {"realm": realm, "nodes": {"create_on_attach": ["*"]}, **settings}
        gateway = GatewayProcess(directory / "gateway.yaml", directory / "gateway.log", settings=settings)
        gateway.program = [str(self.program)]
        gateway.environment |= OWN_PACKAGES
        return gateway

    def run(self, *words: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.program, *words], env=OWN_PACKAGES, capture_output=True, text=True, timeout=HANG_S, check=False
        )


def install(directory: Path) -> Release:
    """Build it in `directory`, and install it there into an environment of its own."""
    sources, tar, release = directory / "sources", directory / "sources.tar", Release(directory / "venv")
    sources.mkdir()
    _run("git", "-C", ROOT, "archive", "--format=tar", f"--output={tar}", COMMIT)
    _run("tar", "-x", "-f", tar, "-C", sources)
    versions = directory / "versions.txt"
    locked = re.findall(r"^\S+==\S+", (sources / "requirements.lock").read_text(), re.MULTILINE)
    versions.write_text("\n".join(locked))
    project = tomllib.loads((sources / "pyproject.toml").read_text())["project"]
    needed = [name for name in project["dependencies"] if not name.startswith(_RECONCILES)]
    _run(_UV, "-q", "venv", "--python", sys.executable, release.directory)
    into = (_UV, "-q", "pip", "install", "--python", release.directory / "bin" / "python")
    _run(*into, "--require-hashes", "-r", sources / "deploy" / "python" / "build.lock")
    _run(*into, "--no-build-isolation", "--constraint", versions, *needed)
    _run(*into, "--no-build-isolation", "--no-deps", sources)
    return release


def _run(*command: str | Path) -> None:
    done = subprocess.run(command, env=OWN_PACKAGES, capture_output=True, text=True, timeout=500, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))} failed ({done.returncode}):\n{done.stderr}")
