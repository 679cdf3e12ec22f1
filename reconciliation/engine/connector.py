"""Spark's connector for Kafka: which jars it is, where they are kept, and whether they are those.

They are fetched once, by `realmgate reconcile --fetch-jars`, through Spark's own Ivy: from where this machine gets its
Maven artifacts. A reconciliation fetches nothing. pyspark 4.0.5 goes with connector 4.0.0: newer connectors lack their
token provider in public registries. What else the connector depends on is in Spark itself, of the same versions.
Errors: `SetupError`. Source: docs/adr/0109.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path

from pyspark.find_spark_home import _find_spark_home

from reconciliation.model.errors import SetupError

FETCH = "realmgate reconcile --fetch-jars"


@dataclass(frozen=True, slots=True)
class Jar:
    """One artifact in the registry, and what it is."""

    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def coordinate(self) -> str:
        return f"{self.group}:{self.artifact}:{self.version}"

    @property
    def file(self) -> str:
        return f"{self.artifact}-{self.version}.jar"


JARS = (
    Jar(
        "org.apache.spark",
        "spark-sql-kafka-0-10_2.13",
        "4.0.0",
        "33a3b8b04df4a2e43c9d5bf8ca5972936a1ac662f2714e014d00ef6f27468bf3",
    ),
    Jar(
        "org.apache.spark",
        "spark-token-provider-kafka-0-10_2.13",
        "4.0.0",
        "f2be3b76f9e6cbe63379d4e4e0dc14f59dbf056ae2ad16ff15ac108004c86767",
    ),
    Jar(
        "org.apache.kafka",
        "kafka-clients",
        "3.9.0",
        "15c1e137f2c2c94398e27abc4060a03b6bde10bf9fac15e8f70c02320b202f18",
    ),
    Jar(
        "org.apache.commons",
        "commons-pool2",
        "2.12.0",
        "6d3bd18df8410f3e31b031aca582cc109342358a62a2759ebd0c4cdf30d06f8b",
    ),
)
CONNECTOR = JARS[0].coordinate
CLASS = "org.apache.spark.sql.kafka010.KafkaSourceProvider"
_IN_SPARK = (
    "com.github.luben:zstd-jni",
    "com.google.code.findbugs:jsr305",
    "org.apache.hadoop:hadoop-client-api",
    "org.apache.hadoop:hadoop-client-runtime",
    "org.lz4:lz4-java",
    "org.scala-lang.modules:scala-parallel-collections_2.13",
    "org.slf4j:slf4j-api",
    "org.xerial.snappy:snappy-java",
)


def default_directory() -> Path:
    """Beside the packages that are installed with realmgate."""
    return Path(sys.prefix, "share", "realmgate", "jars")


def jars_in(directory: Path | None) -> list[Path]:
    """The files, all of them there and whole. None: in the default directory."""
    place = directory or default_directory()
    for jar in JARS:
        problem = _problem(jar, place / jar.file)
        if problem:
            raise SetupError(f"{problem}: {fetch_command(directory)}")
    return [(place / jar.file).absolute() for jar in JARS]


def fetch_command(directory: Path | None) -> str:
    return FETCH if directory is None else f"{FETCH} {shlex.quote(str(directory))}"


def fetch(directory: Path, conf: Mapping[str, str]) -> list[Path]:
    """Put what is not there into `directory`. `conf`: Spark's settings, which may say where artifacts come from."""
    wanted = [jar for jar in JARS if _problem(jar, directory / jar.file)]
    if wanted:
        with tempfile.TemporaryDirectory() as scratch:
            _resolve(Path(scratch), conf)
            for jar in wanted:
                _keep(jar, Path(scratch, "ivy", "jars", f"{jar.group}_{jar.file}"), directory)
    return jars_in(directory)


def _problem(jar: Jar, file: Path) -> str:
    """Empty: it is that jar."""
    if not file.is_file():
        return f"Spark's connector for Kafka is not there, {file} is missing; this fetches it"
    digest = _sha256(file)
    return "" if digest == jar.sha256 else f"{file} is not {jar.coordinate} (SHA-256 {digest}); this replaces it"


def _sha256(file: Path) -> str:
    with file.open("rb") as content:
        return file_digest(content, "sha256").hexdigest()


def _resolve(scratch: Path, conf: Mapping[str, str]) -> None:
    """spark-submit resolves packages, then runs a program that does nothing."""
    nothing = scratch / "nothing.py"
    nothing.touch()
    settings = {
        **conf,
        "spark.jars.ivy": str(scratch / "ivy"),  # not what an earlier try may have left
        "spark.jars.packages": ",".join(jar.coordinate for jar in JARS),
        "spark.jars.excludes": ",".join(_IN_SPARK),
    }
    words = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    submit = Path(_find_spark_home(), "bin", "spark-submit")  # type: ignore[no-untyped-call]
    done = subprocess.run(  # noqa: S603
        [submit, "--master", "local", *words, nothing],
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode:
        raise SetupError(
            f"Spark's connector for Kafka could not be fetched: {_why(done.stdout)}. Where Maven artifacts come from "
            "another place, name it: --conf spark.jars.ivySettings=FILE, or DEFAULT_ARTIFACT_REPOSITORY=URL in the "
            "environment"
        )


def _why(output: str) -> str:
    """What Ivy says, or the last words."""
    lines = [line.strip() for line in output.splitlines() if line.strip() and not line.startswith("\tat ")]
    named = [line for line in lines if "unresolved dependency" in line or "Exception" in line]
    return (named or lines or ["it said nothing"])[-1].rpartition("Exception: ")[2]


def _keep(jar: Jar, fetched: Path, directory: Path) -> None:
    """Under its own name, whole."""
    digest = _sha256(fetched)
    if digest != jar.sha256:
        raise SetupError(
            f"the registry has another {jar.coordinate} than was tested: SHA-256 {digest}, not {jar.sha256}. "
            "Nothing was put in its place"
        )
    directory.mkdir(parents=True, exist_ok=True)
    beside = directory / f".{jar.file}"
    shutil.copyfile(fetched, beside)
    beside.replace(directory / jar.file)
