"""The Spark session: local, quiet, in UTC, sized for one machine.

The Kafka connector is resolved by Ivy through `spark.jars.packages` (about 10 s the first time on a machine, 0.5 s and no
network afterwards), and only for a realm on Kafka. pyspark 4.0.5 goes with connector 4.0.0: newer connectors lack their
token provider in public registries. Errors: `SetupError`. May import: pyspark, the standard library.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from pyspark.sql import SparkSession

from reconciliation.errors import SetupError

CONNECTOR = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0"
_IN_THE_WHEEL = "org.apache.hadoop:hadoop-client-runtime,org.apache.hadoop:hadoop-client-api"  # 60 MB not fetched twice
JAVA_MIN = 17
JAVA_INSTALL = "apt-get install -y openjdk-17-jre-headless"
MEMORY = "4g"
_LOGGING = Path(__file__).with_name("log4j2.properties")


def check_java() -> None:
    """Java is the one thing that pip does not bring."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if java is None or not Path(java).exists():
        raise SetupError(f"Spark needs Java {JAVA_MIN}: {JAVA_INSTALL}")
    told = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr  # noqa: S603
    version = re.search(r'version "(\d+)', told)
    if version is None or int(version[1]) < JAVA_MIN:
        raise SetupError(
            f"Spark needs Java {JAVA_MIN}, {java} is {version[1] if version else 'unknown'}: {JAVA_INSTALL}"
        )


def start(scratch: Path, *, kafka: bool, cores: int = 2) -> SparkSession:
    """A session that leaves nothing behind but in `scratch`."""
    check_java()
    settings = {
        "spark.driver.memory": MEMORY,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_LOGGING.as_uri()} -XX:+UseParallelGC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(4 * cores if cores > 1 else 1),
        "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",  # small data: one task, not many empty ones
        "spark.sql.parquet.compression.codec": "zstd",
        "spark.local.dir": str(scratch / "spill"),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
    }
    if kafka:
        settings |= {"spark.jars.packages": CONNECTOR, "spark.jars.excludes": _IN_THE_WHEEL}
    builder = SparkSession.builder.master(f"local[{cores}]").appName("realmgate reconcile")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()
