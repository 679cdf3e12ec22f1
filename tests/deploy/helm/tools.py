"""helm, built by go from its module, and Kubernetes' schemas with a validator, from the package index: made once, kept
in `.cache/helm`. As a program: makes both, before the tests ask for them.

Errors: `RuntimeError` with the tool's own words.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

from tests.kit.patience import HANG_S
from tests.kit.processes.load_client import CACHE, call, lock
from tests.kit.processes.toolchains import NEEDS_GO

HELM = "helm.sh/helm/v3/cmd/helm@v3.19.2"
LOCKED = Path(__file__).with_name("requirements.txt")
VERSIONS = ("1.25.0", "1.37.0")  # of Kubernetes: the oldest that Chart.yaml takes, and the newest that has schemas


@cache
def helm() -> Path:
    def build(into: Path) -> None:
        call(["go", "install", HELM], GOBIN=str(into), GOTOOLCHAIN="local", GOFLAGS="-trimpath")

    return _built("helm", HELM.encode(), build) / "helm"


@cache
def schemas() -> Path:
    """A directory of Python packages."""

    def build(into: Path) -> None:
        uv = Path(sys.executable).with_name("uv")
        call([str(uv), "pip", "install", "-q", "--require-hashes", "--target", str(into), "-r", str(LOCKED)])

    return _built("schemas", LOCKED.read_bytes(), build)


def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """helm, as on a machine without a cluster."""
    environment = {**os.environ, "KUBECONFIG": os.devnull}
    return subprocess.run(
        [helm(), *words], env=environment, capture_output=True, text=True, check=False, timeout=HANG_S
    )


def complaints(file: Path, version: str) -> str:
    """What Kubernetes' strict schemas say of a file of resources; nothing where it is right."""
    command = [sys.executable, "-m", "kubernetes_validate", "--strict", "-k", version, str(file)]
    environment = {**os.environ, "PYTHONPATH": str(schemas())}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=HANG_S)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def _built(name: str, made_from: bytes, build: Callable[[Path], None]) -> Path:
    into = CACHE / "helm" / f"{name}-{hashlib.sha256(made_from).hexdigest()[:16]}"
    with lock(f"helm-{name}"):
        if not into.exists():
            making = into.with_name(f"making-{name}")
            shutil.rmtree(making, ignore_errors=True)
            making.mkdir(parents=True)
            build(making)
            making.rename(into)
    return into


if __name__ == "__main__":
    schemas()
    if not NEEDS_GO.args[0]:
        helm()
