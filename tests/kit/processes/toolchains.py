"""What foreign clients are built with, and a server of others: where a machine lacks it, its tests are left out."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from tests.kit.processes.rabbitmq import PROGRAMS


def lacks(command: str, *wanted: int) -> bool:
    """Whether there is no such command here, or an older one: `lacks("go version", 1, 25)`."""
    program, *arguments = command.split()
    if shutil.which(program) is None:
        return True
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False).stdout
    match = re.search(r"(\d+)\.(\d+)", done)
    return match is None or (int(match[1]), int(match[2])) < wanted


def _refuses(*command: str) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode != 0


# The versions are those that the locked dependencies ask for (go.mod, Cargo.lock). Debian 12 has older ones.
NEEDS_GO = pytest.mark.skipif(
    lacks("go version", 1, 25), reason="needs Go 1.25 or newer: https://go.dev/dl, or golang-go of a newer Debian"
)
NEEDS_RUST = pytest.mark.skipif(
    lacks("cargo --version", 1, 90), reason="needs Rust 1.90 or newer: https://rustup.rs, or rustup of a newer Debian"
)
NEEDS_RABBITMQ = pytest.mark.skipif(not PROGRAMS.exists(), reason="needs RabbitMQ: apt-get install rabbitmq-server")

# A container may be root and make no namespace.
NEEDS_NAMESPACES = pytest.mark.skipif(
    lacks("ip -V") or lacks("nft --version") or lacks("unshare --version") or _refuses("unshare", "--net", "true"),
    reason="needs root, network namespaces and nft: apt-get install iproute2 nftables",
)
