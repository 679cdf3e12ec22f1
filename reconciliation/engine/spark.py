"""The Spark session: our own, quiet, or the one that spark-submit prepared.

Nothing is downloaded. Errors: `SetupError`, `SettingsError`.
"""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from reconciliation.engine import connector, java
from reconciliation.engine.known_classes import keep_classes
from reconciliation.engine.spark_settings import SWITCHED, Asked, checked, settings
from reconciliation.model.errors import SetupError


def check(options: Asked) -> None:
    """Whether a session can be made, as far as that can be known before."""
    given = submitted()
    checked(options, given)
    if given is None:
        java.check()


def submitted() -> dict[str, str] | None:
    """What spark-submit has set, which started this process; None: it did not."""
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        return None
    SparkContext._ensure_initialized()
    return dict(SparkConf().getAll())


def start(
    scratch: Path, *, offsets: int, jars: Sequence[Path], options: Asked | None = None, cores: int = 2,
    of_sums: bool = False,
) -> SparkSession:  # fmt: skip
    """A session that leaves nothing behind but in `scratch`, which is there. `offsets`: how many there are to read, at
    most. `jars`: what is loaded besides Spark itself. `cores`: where no master is named. `of_sums`: see `settings`."""
    given = submitted()
    wanted = checked(options or Asked(), given)
    builder = SparkSession.builder
    archive = java.archive_in(jars[0].parent if jars else connector.default_directory()) if given is None else None
    made = settings(
        wanted, given, scratch=scratch, offsets=offsets, jars=jars, cores=cores, archive=archive, of_sums=of_sums
    )
    for name, value in made.items():
        builder = builder.config(name, value)
    if given is None:
        with _said_to(scratch.with_name("spark.log")):
            session = builder.getOrCreate()
    else:
        session = builder.getOrCreate()
        for jar in jars:
            session.sql(f"ADD JAR '{jar.as_uri()}'")  # the JVM was there before: spark.jars would not reach it
    keep_classes()
    return session


def plan_for(session: SparkSession, plans: Mapping[str, str]) -> None:
    """From now on. `plans`: of `spark_settings`. What `--conf` says stays, and where a master is named, all."""
    for name in (session.conf.get(SWITCHED, "") or "").split():
        session.conf.set(name, plans[name])


def stop(session: SparkSession) -> None:
    """Its JVM may be gone, as systemd and a terminal signal all processes of a command."""
    level = logging.root.manager.disable
    logging.disable(logging.CRITICAL)  # py4j would log the traceback, by the root logger
    try:
        with warnings.catch_warnings(), suppress(Py4JError, OSError):
            warnings.simplefilter("ignore")
            session.stop()
    finally:
        logging.disable(level)


def is_loaded(name: str) -> bool:
    """Whether the JVM that spark-submit started has this class."""
    if submitted() is None:
        return False
    jvm = SparkContext._jvm
    assert jvm is not None
    try:
        jvm.java.lang.Thread.currentThread().getContextClassLoader().loadClass(name)
    except Py4JJavaError:
        return False
    return True


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
