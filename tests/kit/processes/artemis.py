"""The peer: Artemis as its users run it, durable, with a synced AIO journal; an embedded server in its own process.

`journal` says what it really writes with: without libaio Artemis falls back to NIO. Errors: `RuntimeError` with
the end of its log.
"""

from __future__ import annotations

import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from tests.kit.patience import HANG_S
from tests.kit.processes.broker import free_port

ROOT = Path(__file__).parents[3]
HERE = ROOT / "tests" / "kit" / "artemis"
START_TIMEOUT_S = HANG_S
MAIN = "org.apache.activemq.artemis.core.server.embedded.Main"
FELL_BACK = "AMQ222018"


@dataclass(slots=True)
class Artemis:
    """A broker that is up."""

    directory: Path
    port: int
    process: subprocess.Popen[bytes]

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def journal(self) -> str:
        return "NIO (libaio not found)" if FELL_BACK in (self.directory / "out.log").read_text() else "ASYNCIO"

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def start_artemis(directory: Path, heap: str = "512m") -> Artemis:
    """Start with an empty journal in `directory`, on a free port. `heap`: the memory of its JVM; a bench gives more."""
    cache = Path(subprocess.run([HERE / "libs.sh"], check=True, capture_output=True, text=True).stdout.strip())
    port = free_port()
    (directory / "etc").mkdir(parents=True)
    (directory / "etc" / "broker.xml").write_text((HERE / "broker.xml").read_text().replace("@PORT@", str(port)))
    logging = ROOT / "deploy" / "kafka" / "log4j2.properties"
    command = ["java", f"-Xms{heap}", f"-Xmx{heap}", "-XX:+UseG1GC", "-XX:+UseStringDeduplication"]
    command += [f"-Djava.library.path={cache}/native/lib/linux-x86_64", f"-Dlog4j2.configurationFile=file:{logging}"]
    command += ["-cp", f"{cache}/libs/*", MAIN, str(directory)]
    with (directory / "out.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    peer = Artemis(directory, port, process)
    _wait(peer)
    return peer


def _wait(peer: Artemis) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline and peer.process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", peer.port), 1).close()
            return
        except OSError:
            time.sleep(0.1)
    peer.stop()
    raise RuntimeError(f"Artemis did not start:\n{(peer.directory / 'out.log').read_text()[-3000:]}")
