"""The report of a real cluster, a master and two workers, is byte for byte that of one machine: on evidence with every
kind of fault, of either realm, by `--master` or by `spark-submit`, and where a worker is killed meanwhile. It is at
a URI: of ViewFs, which comes with Spark, and mounts a directory of this machine; or of `file:`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.kit.patience import HANG_S
from tests.kit.processes.gateway import REALMGATE
from tests.reconciliation.realms import Place, made
from tests.reconciliation.standalone import EXECUTOR, SPARK, Cluster, standalone
from tests.reconciliation.variants import of_publishes, of_settlements, of_the_evidence, of_the_realm
from tests.reconciliation.variants.shared_realm import SharedRealm

VARIANTS = [*of_publishes.VARIANTS, *of_settlements.VARIANTS, *of_the_realm.VARIANTS, *of_the_evidence.VARIANTS]
REPORT = ("manifest.json", "summary.txt", "index.html")
INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""Compiling takes longer than so few rows do."""
FIRST_COMPILER = {f"spark.{part}.extraJavaOptions": "-XX:TieredStopAtLevel=1" for part in ("driver", "executor")}
"""As one machine has it for so few rows."""
SEVERAL = {"spark.sql.shuffle.partitions": "4"}
NO_PYTHON = {"PYSPARK_PYTHON": "/nowhere", "PYSPARK_DRIVER_PYTHON": sys.executable}
"""Where the executors are."""
NOT_CLEAN = 1
PACKAGE = Path(__file__).parents[3] / "reconciliation"


URI = "viewfs://reports/kept"


@dataclass(slots=True)
class Evidence:
    """A realm with faults, and what one machine says of it, as it is by default."""

    config: Path
    directory: Path
    alone: dict[str, bytes]

    @property
    def mount(self) -> dict[str, str]:
        """Below `URI` is what is below `directory`."""
        return {"spark.hadoop.fs.viewfs.mounttable.reports.link./kept": self.directory.as_uri()}


def conf(*settings: dict[str, str]) -> list[str]:
    return [word for setting in settings for name, value in setting.items() for word in ("--conf", f"{name}={value}")]


def report(out: Path) -> dict[str, bytes]:
    assert {path.name for path in out.iterdir()} >= {"landed", "report"}
    return {name: _without_its_time((out / name).read_bytes()) for name in REPORT}


def _without_its_time(content: bytes) -> bytes:
    """But for the line that says when it was made."""
    return b"".join(line for line in content.splitlines(True) if b"Made: " not in line)


def run(words: Sequence[object], begun: Callable[[str], object] = str) -> str:
    """Its stderr; `begun` gets each line of it at once."""
    lines = []
    with subprocess.Popen(
        [*map(str, words)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", **NO_PYTHON},
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            lines.append(line)
            begun(line)
        code = process.wait(HANG_S)
    assert code == NOT_CLEAN, "".join(lines)[-3000:]
    return "".join(lines)


def reconcile(source: Evidence, uri: str, master: str, begun: Callable[[str], object] = str) -> None:
    settings = conf(EXECUTOR, INTERPRETED, FIRST_COMPILER, SEVERAL, source.mount)
    run([REALMGATE, "reconcile", "--config", source.config, "--out", uri, "--master", master, *settings], begun)


def written(place: Place, directory: Path) -> Path:
    realm, file = place.realm, directory / "realmgate.yaml"
    where = f"path: {realm.path}" if realm.path else f'bootstrap: "{realm.bootstrap}"'
    file.write_text(f"realm: {{kind: {realm.kind}, prefix: {realm.prefix}, {where}}}\n")
    return file


def evidence(kind: str, request: pytest.FixtureRequest, directory: Path) -> Evidence:
    place = made(kind, request, directory / "realm")
    with place.world() as world:
        shared = SharedRealm(world)
        for variant in VARIANTS:
            variant.plant(shared, variant.name)
        shared.close()
    source = Evidence(written(place, directory), directory, {})
    run([REALMGATE, "reconcile", "--config", source.config, "--out", directory / "alone"])
    source.alone = report(directory / "alone")
    return source


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with standalone(tmp_path_factory.mktemp("cluster"), workers=2) as started:
        yield started


@pytest.fixture(scope="module")
def embedded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    return evidence("embedded", request, tmp_path_factory.mktemp("embedded"))


@pytest.fixture(scope="module")
def kafka(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    return evidence("kafka", request, tmp_path_factory.mktemp("kafka"))


def test_two_workers_say_what_one_machine_says(cluster: Cluster, embedded: Evidence) -> None:
    before = [worker.tasks for worker in cluster.workers]
    reconcile(embedded, f"{URI}/two", cluster.url)
    assert report(embedded.directory / "two") == embedded.alone
    assert all(worker.tasks > tasks for worker, tasks in zip(cluster.workers, before, strict=True)), "both had a part"
    assert all(f'"{code}"'.encode() in embedded.alone["manifest.json"] for code in ("P1", "A2", "A7", "S2", "Q1"))


def test_spark_submit_with_an_archive_of_the_package(cluster: Cluster, kafka: Evidence, tmp_path: Path) -> None:
    """The driver gets the connector after its JVM was started."""
    archive = tmp_path / "realmgate.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for path in PACKAGE.rglob("*"):
            if path.suffix in (".py", ".css", ".properties"):
                file.write(path, path.relative_to(PACKAGE.parent))
    (tmp_path / "main.py").write_bytes((PACKAGE / "__main__.py").read_bytes())
    settings = conf(EXECUTOR, INTERPRETED, FIRST_COMPILER, SEVERAL, kafka.mount)
    words = ["--master", cluster.url, *settings, "--py-files", archive, tmp_path / "main.py"]
    output = run([SPARK / "bin" / "spark-submit", *words, "--config", kafka.config, "--out", f"{URI}/submitted"])
    assert report(kafka.directory / "submitted") == kafka.alone
    assert f"{archive}/reconciliation/jobs" in output, "where Spark says that the jobs come from"


def test_a_worker_that_is_killed_meanwhile_changes_nothing(cluster: Cluster, kafka: Evidence) -> None:
    """Spark does its part again."""
    lost = cluster.workers[0]
    before, killed = lost.tasks, []

    def kill(line: str) -> None:
        if "comparing publishes" in line:
            killed.append(lost.tasks)
            cluster.kill(lost)

    reconcile(kafka, (kafka.directory / "killed").as_uri(), cluster.url, kill)
    assert report(kafka.directory / "killed") == kafka.alone
    assert killed and killed[0] > before, "it had a part, until it was killed"
