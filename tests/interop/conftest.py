"""One gateway a realm for the clients that need none of their own: they keep apart by the names of their nodes. The
clients are built beside the tests of the rooms before this one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.gateway_process import GatewayProcess, embedded_realm, kafka_realm, start_gateway

HERE = Path(__file__).parent
LARGEST = 8_000_000


def pytest_collection_finish(session: pytest.Session) -> None:
    """Compiling eighty crates takes a minute of two processors: beside other tests it takes what these leave."""
    ours = [item.path.is_relative_to(HERE) for item in session.items]
    if session.config.option.collectonly or not any(ours) or ours[0]:
        return
    command = ["nice", "-n", "19", sys.executable, "-m", "tests.interop.clients"]
    builder = subprocess.Popen(
        command,
        cwd=HERE.parent.parent,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )

    def end() -> None:
        with suppress(ProcessLookupError):
            os.killpg(builder.pid, signal.SIGTERM)
        builder.wait()

    session.config.add_cleanup(end)


@pytest.fixture(scope="session", params=["embedded", "kafka"])
def house(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """A real gateway process with every default but for the size of messages; nodes are made on attach. It must end in
    order: exit code 0."""
    directory = tmp_path_factory.mktemp(f"house-{request.param}")
    if request.param == "kafka":
        realm = kafka_realm(request.getfixturevalue("kafka_bootstrap"), "house")
        realm["client"] = {"message.max.bytes": str(LARGEST + 1000)}
    else:
        realm = embedded_realm(directory)
    gateway = start_gateway(directory, realm, limits={"message_size_bytes": LARGEST})
    yield gateway
    code = gateway.stop()
    assert code == 0, f"the gateway ended with {code}:\n{gateway.log()}"
