"""`make wheels`: what it builds, installed where there is neither compiler nor Java, serves; for the Python of `.venv`
and for the newest one that this machine has.

One build and one installation of each for all tests here; the packages of others come from the index or uv's cache, in
the locked versions.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.kit.processes.gateway import embedded_realm, make_gateway

ROOT = Path(__file__).parents[2]
UV = str(Path(sys.executable).with_name("uv"))
SIZE_MAX = 70_000_000  # octets of the packages, without Python


@dataclass
class Installed:
    """An environment that has the wheel and what it depends on; `bare`: the environment variables to run it with."""

    directory: Path
    version: str  # of its Python
    bare: dict[str, str]

    @property
    def packages(self) -> Path:
        return self.directory / "lib" / f"python{self.version}" / "site-packages"

    def run(self, *words: str | Path) -> subprocess.CompletedProcess[str]:
        program = self.directory / "bin" / "realmgate"
        return subprocess.run(
            [program, *words], env=self.bare, capture_output=True, text=True, timeout=180, check=False
        )  # fmt: skip


@pytest.fixture(scope="module", params=["own", "newest"])
def python(request: pytest.FixtureRequest) -> tuple[str, str]:
    """Version and interpreter. There may be no newer one than that of `.venv`."""
    listing = subprocess.run(
        [ROOT / "deploy/python/wheels.sh", "--pythons"], stdout=subprocess.PIPE, text=True, check=True
    )
    pythons = [line.split(maxsplit=1) for line in listing.stdout.splitlines()]
    version, interpreter = pythons[0 if request.param == "own" else -1]
    return version, interpreter


@pytest.fixture(scope="module")
def wheels(python: tuple[str, str], tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    directory = tmp_path_factory.mktemp("dist")
    environment = {**os.environ, "PYTHONPATH": ""}
    subprocess.run(
        ["make", "wheels", f"DIST={directory}", f"PYTHONS={python[0]}"], cwd=ROOT, env=environment, check=True
    )
    return sorted(directory.rglob("*.whl"))


@pytest.fixture(scope="module")
def installed(python: tuple[str, str], wheels: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Installed:
    directory = tmp_path_factory.mktemp("installed")
    (directory / "bin").mkdir()  # no compiler, no Java
    bare = {"PATH": str(directory / "bin"), "HOME": str(directory), "PYTHONPATH": ""}
    locked = re.findall(r"^\S+==\S+", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
    (directory / "versions.txt").write_text("\n".join(locked))
    version, interpreter = python
    made = Installed(directory / "venv", version, bare)
    of_uv = {**os.environ, **bare, "HOME": os.environ.get("HOME", "/")}  # its cache is there
    subprocess.run([UV, "-q", "venv", "--python", interpreter, str(made.directory)], env=of_uv, check=True, timeout=120)
    install = [UV, "-q", "pip", "install", "--no-build", "--constraint", str(directory / "versions.txt")]
    into = ["--python", str(made.directory / "bin" / "python")]
    subprocess.run([*install, *into, *wheels], env=of_uv, check=True, timeout=500)
    return made


def test_a_wheel_has_the_parts_in_c_and_what_is_read_at_run_time(installed: Installed, wheels: list[Path]) -> None:
    assert [re.sub("-.*", "", wheel.name) for wheel in wheels] == ["python_qpid_proton", "realmgate"]
    extensions = re.findall(r"^name = \"([\w.]+)\"\nsources", (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert len(extensions) > 4
    for extension in extensions:
        assert [*installed.packages.glob(f"{extension.replace('.', '/')}.*.so")], extension
    for file in ("tables/publish.yaml", "errors.yaml", "schemas/publish.json"):
        assert (installed.packages / "mappings" / file).read_bytes() == (ROOT / "mappings" / file).read_bytes()
    assert installed.run("mappings", "check").returncode == 0


def test_the_base_has_no_spark_and_is_small(installed: Installed) -> None:
    there = {path.name.lower() for path in installed.packages.iterdir()}
    assert not there & {"numpy", "pyspark", "pyarrow", "py4j", "crc32c", "pytest", "jsonschema"}
    size = sum(path.stat().st_size for path in installed.packages.rglob("*") if path.is_file())
    assert size <= SIZE_MAX, f"{size / 1e6:.0f} MB"


def test_reconcile_says_what_to_install(installed: Installed, tmp_path: Path) -> None:
    config = tmp_path / "gateway.yaml"
    config.write_text("realm: {kind: embedded, path: realm}\n")
    done = installed.run("reconcile", "--config", config, "--out", tmp_path / "report")
    assert done.returncode == 2
    [line] = done.stderr.splitlines()
    assert re.search(r"is not installed: \S+/bin/python -m pip install 'numpy' 'pyarrow' 'pyspark==[\d.]+'$", line), (
        line
    )


def test_it_serves_sends_and_receives(installed: Installed, tmp_path: Path) -> None:
    gateway = make_gateway(tmp_path, embedded_realm(tmp_path), admin={"listen": "http://127.0.0.1:0"})
    gateway.program = [str(installed.directory / "bin" / "realmgate")]
    gateway.environment |= installed.bare
    gateway.start()
    try:
        url = f"amqp://{gateway.address}"
        sent = installed.run("send", "orders", "--body", "hello", "--url", url)
        assert (sent.returncode, sent.stderr) == (0, "") and "accepted" in sent.stdout
        received = installed.run("receive", "orders", "--url", url)
        assert (received.returncode, received.stderr) == (0, "") and received.stdout.endswith("hello\n")
        assert gateway.stop() == 0
    finally:
        gateway.kill()
