"""The JVM's archive of Spark's classes: with it a session starts, and judges a small realm, with a fifth less work.

`realmgate reconcile --fetch-jars` makes it beside the jars. Its name says for which Java and which Spark it is: another
one has none, and starts without. Errors: `SetupError`. Source: JDK 17, `java` -XX:ArchiveClassesAtExit; ADR 0132.

    python -m reconciliation.engine.class_archive FILE     writes it
"""

from __future__ import annotations

import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from reconciliation.engine import java, spark
from reconciliation.engine.spark_settings import JAVA, Asked
from reconciliation.model.errors import SetupError


def make(directory: Path) -> Path:
    """What is there already is left; those of another Java or Spark are removed."""
    target = java.archive_for(directory)
    if target.exists():
        return target
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".classes-", dir=directory) as scratch:
        making = Path(scratch, target.name)
        program = [sys.executable, "-m", __spec__.name, str(making)]
        done = subprocess.run(  # noqa: S603
            program, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            errors="replace", check=False,
        )  # fmt: skip
        if not making.exists():
            errors = [line for line in done.stdout.splitlines() if "Error" in line]
            raise SetupError(f"Java wrote none: {errors[-1] if errors else f'exit code {done.returncode}'}")
        for old in directory.glob(java.ARCHIVES):
            old.unlink()
        making.replace(target)
    return target


def _write(file: Path) -> None:
    """Java writes it when it ends, of what it has loaded until then."""
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch, "scratch")
        place.mkdir()
        option = shlex.quote(f"-XX:ArchiveClassesAtExit={file}")
        session = spark.start(place, offsets=0, jars=[], options=Asked(conf={JAVA: option}))
        _load(session, Path(scratch))
        gateway = SparkContext._gateway
        assert gateway is not None
        session.stop()
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait()


def _load(session: SparkSession, directory: Path) -> None:
    """Of what a reconciliation asks, something of each kind."""
    numbers = session.range(100).select("id", (F.col("id") % 7).alias("group"), F.lit("a;b").alias("text"))
    by_group = numbers.groupBy("group").agg(F.count("*").alias("count"), F.collect_list("id").alias("ids"))
    joined = numbers.join(F.broadcast(by_group), "group", "left").withColumn(
        "number", F.row_number().over(Window.partitionBy("group").orderBy("id"))
    )
    written = joined.withColumn("line", F.to_json(F.struct("id", "group"))).withColumn("text", F.split("text", ";"))
    written.write.partitionBy("group").parquet(str(directory / "rows"))
    _read(session, directory).orderBy("id").collect()
    written.select("line").write.text(str(directory / "lines"))
    session.read.text(str(directory / "lines")).where(F.col("value").rlike("^.")).count()


def _read(session: SparkSession, directory: Path) -> DataFrame:
    rows = session.read.parquet(str(directory / "rows"))
    parsed = rows.withColumn("record", F.from_json("line", "id bigint, `group` bigint")).select("*", "record.*")
    flat = parsed.toDF("id", "text", "count", "ids", "number", "line", "group", "record", "of_id", "of_group")
    united = flat.select("id", F.explode("ids").alias("member")).unionByName(flat.selectExpr("id", "of_id as member"))
    known = united.join(flat.select("id", F.sha2(F.col("line").cast("binary"), 256).alias("digest")), "id", "left")
    return known.join(flat.where("id > 3").select("id"), "id", "left_semi").distinct()


if __name__ == "__main__":
    _write(Path(sys.argv[1]))
