"""The Spark session: local, quiet, in UTC, sized for one machine.

Nothing is downloaded. Errors: `SetupError`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from reconciliation.model.errors import SetupError

JAVA_MIN = 17
JAVA_INSTALL = "apt-get install -y openjdk-17-jre-headless"
MEMORY = "4g"
_JAVA_OPTIONS = (
    f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties').as_uri()} -XX:+UseParallelGC"
)

SMALL_OFFSETS = 200_000
"""Up to here compiling costs more than it saves: plans are interpreted, and the JVM does with its first compiler.
Measured on a demo: 49 CPU seconds become 19, a third of it the JVM's start."""
_SMALL_JAVA_OPTIONS = ("-XX:TieredStopAtLevel=1",)
_SMALL = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


def check_java() -> None:
    """Java is the one thing that pip does not bring."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if java is None or not Path(java).exists():
        raise SetupError(f"Spark needs Java {JAVA_MIN}: {JAVA_INSTALL}")
    printed = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr  # noqa: S603
    version = re.search(r'version "(\d+)', printed)
    if version is None or int(version[1]) < JAVA_MIN:
        raise SetupError(
            f"Spark needs Java {JAVA_MIN}, {java} is {version[1] if version else 'unknown'}: {JAVA_INSTALL}"
        )


def start(scratch: Path, *, offsets: int, jars: Sequence[Path], cores: int = 2) -> SparkSession:
    """A session that leaves nothing behind but in `scratch`. `offsets`: how many there are to read, at most. `jars`:
    what is loaded besides Spark itself."""
    check_java()
    is_small = offsets <= SMALL_OFFSETS
    settings = {
        "spark.driver.memory": MEMORY,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": " ".join((_JAVA_OPTIONS, *(_SMALL_JAVA_OPTIONS if is_small else ()))),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "16",
        "spark.sql.parquet.compression.codec": "zstd",
        "spark.local.dir": str(scratch / "spill"),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
    }
    if is_small:
        settings |= _SMALL
    if jars:
        settings["spark.jars"] = ",".join(map(str, jars))
    builder = SparkSession.builder.master(f"local[{cores}]").appName("realmgate reconcile")
    for name, value in settings.items():
        builder = builder.config(name, value)
    with _said_to(scratch.with_name("spark.log")):
        return builder.getOrCreate()


@contextmanager
def _said_to(file: Path) -> Iterator[None]:
    """The JVM inherits standard output and error when it starts: Spark says a lot there, that no operator needs."""
    kept = [os.dup(1), os.dup(2)]
    log = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.dup2(log, 1)
        os.dup2(log, 2)
        yield
    except Exception as error:
        words = file.read_text(errors="replace").strip().splitlines()[-3:]
        raise SetupError(f"Spark did not start ({error}); all it said is in {file}: {' / '.join(words)}") from error
    finally:
        os.dup2(kept[0], 1)
        os.dup2(kept[1], 2)
        for descriptor in (*kept, log):
            os.close(descriptor)
