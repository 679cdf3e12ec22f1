"""The foreign clients: built once into `.cache/`, run as processes. As a program: builds them all, before they are
asked for (`conftest.py` starts it beside the first tests).

* Qpid JMS (`jms/`), and Spring JMS on it (`spring/`): class path by Maven, compiled by javac;
* rhea (`rhea/`): by npm from its lock file;
* the C load client (`tests/kit/load/`): by make, on Debian's libqpid-proton11-dev;
* python-qpid-proton's `Container` (`python/`) and cli-proton-python: installed with the locked dependencies;
* go-amqp (`go/`) by go, fe2o3-amqp (`rust/`) by cargo, from their lock files, where those are installed.

Where bodies are compared, that of message i is the text `message i` and three characters beyond ASCII when i is even;
`i % 257` bytes rising from i when odd (from Python: `message i` alone). Each client knows this and compares.
Errors: `RuntimeError` with the client's own words.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

from tests.kit.processes.gateway import GatewayProcess
from tests.kit.processes.load_client import CACHE, ROOT, call, load_client, lock
from tests.kit.processes.toolchains import NEEDS_GO, NEEDS_RUST

HERE = Path(__file__).parent
LEDGER = ROOT / "deploy" / "ledger"  # applications put it beside themselves
RUN_TIMEOUT_S = 200.0


def jms(*arguments: str, program: str = "Client") -> str:
    """Qpid JMS; see `PROGRAM.java` for the commands. Returns what it prints."""
    return _run(_java(_jms(), program, arguments))


def jms_beside(*arguments: object, program: str) -> subprocess.Popen[str]:
    """The same, running; the one who asked for it waits for it."""
    return subprocess.Popen(_java(_jms(), program, arguments), stdout=subprocess.PIPE, text=True)


def spring(*arguments: object) -> str:
    """The Spring application; see `spring/src/main/java/Application.java`. Returns what it prints."""
    return _run(_java(_spring(), "Application", arguments))


def spring_beside(*arguments: object) -> subprocess.Popen[str]:
    """The same, running; the one who asked for it waits for it."""
    return subprocess.Popen(_java(_spring(), "Application", arguments), stdout=subprocess.PIPE, text=True)


def _java(built: Path, program: str, arguments: Iterable[object]) -> list[str]:
    quick = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m"]  # it lives for seconds
    return ["java", *quick, "-cp", f"{built / 'classes'}:{built / 'libs'}/*", program, *map(str, arguments)]


def lines_of_java(source: Path) -> str:
    """A file of Java with Qpid JMS on its class path. Returns what it prints."""
    return _run(["java", "-cp", f"{_jms() / 'libs'}/*", str(source)])


def lines_of_javascript(source: Path) -> str:
    """A file of JavaScript that may require rhea. Returns what it prints."""
    return _run(["node", str(source)], NODE_PATH=_rhea() / "node_modules")


def rhea(
    mode: str, port: int, node: str, count: int, host: str = "127.0.0.1", trusted: Path | None = None
) -> dict[str, Any]:
    """rhea; `mode` is send or receive; `host` may be amqps://HOST, ws://HOST or wss://HOST. Returns its report."""
    script = HERE / "rhea" / "client.js"
    extra = {"NODE_EXTRA_CA_CERTS": trusted} if trusted is not None else {}
    command = ["node", str(script), mode, host, str(port), node, str(count)]
    out = _run(command, NODE_PATH=_rhea() / "node_modules", **extra)
    return _report(out)


def container(*arguments: object) -> dict[str, Any]:
    """python-qpid-proton's `Container`; see `python/container.py` for the commands. Returns its report."""
    script = HERE / "python" / "container.py"
    return _report(_run([sys.executable, str(script), *map(str, arguments)]))


def cli_proton(role: str, *options: str) -> list[dict[str, Any]]:
    """cli-proton-python's `sender` or `receiver`, as installed. Returns the messages that it logs."""
    program = Path(sys.executable).with_name(f"cli-proton-python-{role}")
    logged = _run([str(program), *options, "--log-msgs", "json", "--timeout", "30"])
    return [_report(line) for line in logged.splitlines()]


def rhea_asks(port: int, node: str, count: int) -> dict[str, Any]:
    """rhea asks and answers itself; see `ask.js`. Returns its report."""
    script = HERE / "rhea" / "ask.js"
    command = ["node", str(script), "127.0.0.1", str(port), node, str(count)]
    return _report(_run(command, NODE_PATH=_rhea() / "node_modules"))


def rhea_sessions(mode: str, port: int, node: str, count: int) -> dict[str, Any]:
    """rhea's sessions, sizes and time-outs; see `sessions.js` for the modes. Returns its report."""
    script = HERE / "rhea" / "sessions.js"
    command = ["node", str(script), mode, "127.0.0.1", str(port), node, str(count)]
    return _report(_run(command, NODE_PATH=_rhea() / "node_modules"))


def load(mode: str, address: str, node: str, *options: str) -> dict[str, Any]:
    """The C load client; `mode` is send or receive. Returns its report."""
    return _report(_run([str(load_client()), mode, "--address", address, "--node", node, *options]))


def lines_of_go(source: Path) -> str:
    """A program of Go, alone in its folder, that may import go-amqp. Returns what it prints."""
    for name in ("go.mod", "go.sum"):
        shutil.copy(HERE / "go" / name, source.parent)
    program = source.with_suffix("")
    call(["go", "build", "-trimpath", "-o", str(program), "."], cwd=source.parent, GOTOOLCHAIN="local")
    return _run([str(program)])


def go_amqp(*arguments: object) -> str:
    """go-amqp; see `go/client.go` for the scenarios. Returns what it prints."""
    return _run([str(_go() / "client"), *map(str, arguments)])


def fe2o3(*arguments: object) -> str:
    """fe2o3-amqp; see `rust/src/main.rs` for the scenarios. Returns what it prints."""
    return _run([str(_rust()), *map(str, arguments)])


def waiting(gateway: GatewayProcess, queue: str) -> int:
    """How many messages the operator still sees in a queue: the lines of `queue peek` below its heading."""
    return len(gateway.command("queue", "peek", queue).splitlines()) - 1


@cache
def _jms() -> Path:
    return _built_by_maven("jms")


@cache
def _spring() -> Path:
    return _built_by_maven("spring")


def _built_by_maven(name: str) -> Path:
    pom, artifacts = HERE / name / "pom.xml", HERE / name / "artifacts.sha256"
    programs = sorted((HERE / name / "src" / "main" / "java").glob("*.java"))
    programs += sorted(LEDGER.glob("*.java")) if name == "jms" else []

    def build(into: Path) -> None:
        call([str(ROOT / "deploy" / "maven" / "class-path.sh"), str(pom), str(into / "libs")])
        compile_ = ["javac", "-encoding", "UTF-8", "-cp", f"{into / 'libs'}/*", "-d", str(into / "classes")]
        call([*compile_, *map(str, programs)])

    return _built(name, [pom, artifacts, *programs], build)


@cache
def _rhea() -> Path:
    sources = [HERE / "rhea" / name for name in ("package.json", "package-lock.json", ".npmrc")]

    def build(into: Path) -> None:
        for source in sources:
            shutil.copy(source, into)
        call(["npm", "ci", "--no-audit", "--no-fund", "--loglevel=error", "--prefix", str(into)], cwd=into)

    return _built("rhea", sources, build)


@cache
def _go() -> Path:
    sources = [HERE / "go" / name for name in ("go.mod", "go.sum", "client.go")]

    def build(into: Path) -> None:
        call(["go", "build", "-trimpath", "-o", str(into / "client"), "."], cwd=HERE / "go", GOTOOLCHAIN="local")

    return _built("go", sources, build)


@cache
def _rust() -> Path:
    sources = [HERE / "rust" / name for name in ("Cargo.toml", "Cargo.lock", "src/main.rs")]
    target = CACHE / "interop" / "rust-target"  # some eighty crates, built once

    def build(_: Path) -> None:
        call(["cargo", "build", "-q", "--locked", "--manifest-path", str(sources[0]), "--target-dir", str(target)])

    _built("rust", sources, build)
    return target / "debug" / "interop-fe2o3"


def _built(name: str, sources: list[Path], build: Callable[[Path], None]) -> Path:
    """`.cache/interop/NAME`, built anew only when a source has changed."""
    directory = CACHE / "interop" / name
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()
    stamp = directory / "sources.sha256"
    with lock(f"interop-{name}"):
        if not stamp.exists() or stamp.read_text() != digest:
            shutil.rmtree(directory, ignore_errors=True)
            directory.mkdir(parents=True)
            build(directory)
            stamp.write_text(digest)
    return directory


def _run(command: list[str], **environment: Path) -> str:
    environ = {**os.environ, **{name: str(value) for name, value in environment.items()}}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=RUN_TIMEOUT_S, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{Path(command[0]).name} failed ({done.returncode}):\n{done.stdout}{done.stderr}")
    return done.stdout.strip()


def _report(line: str) -> dict[str, Any]:
    report = json.loads(line)
    assert isinstance(report, dict)
    return report


CLIENTS = {"load": load_client, "jms": _jms, "rhea": _rhea, "go": _go, "rust": _rust, "spring": _spring}

if __name__ == "__main__":
    lacking = {"go": NEEDS_GO, "rust": NEEDS_RUST}.get(sys.argv[1])
    if lacking is None or not lacking.args[0]:  # a machine that lacks it leaves out the tests of that client
        CLIENTS[sys.argv[1]]()
