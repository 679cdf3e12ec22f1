"""The settings of Spark: ours, then what spark-submit has set, then what the command line asks for.

Without a master it is one machine, two cores. A named master may be anything that Spark knows; what only one machine
needs is left out then. Errors: `SettingsError`. Source: docs/reconciliation.md "On a cluster".
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from reconciliation.model.settings import SettingsError

MASTER, JARS, JAVA = "spark.master", "spark.jars", "spark.driver.extraJavaOptions"
_LOCAL = "local[{cores}]"
_MEMORY = "4g"
_LOG = Path(__file__).with_name("log4j2.properties")

SMALL_OFFSETS = 200_000
"""Up to here compiling costs more than it saves: plans are interpreted, and the JVM does with its first compiler.
Measured on a demo: 49 CPU seconds become 19, a third of it the JVM's start."""
_FIRST_COMPILER = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
"""The second is Java's own value where all compilers are there. With the first alone it is 48 MB, which a session of
many reconciliations fills: Java then looks for code that it can drop all the time."""
_ARCHIVING = "-XX:ArchiveClassesAtExit"
"""Java does not start with an archive to make another one."""
_FEW = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
_MANY = {
    "spark.sql.shuffle.partitions": "16",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
}
"""The same settings, where many rows are read. All but the first are Spark's own."""
_SUMS = {**_MANY, "spark.sql.shuffle.partitions": "2", "spark.sql.adaptive.enabled": "false"}
"""The same, where many partial aggregates are added up: compiled, and in few tasks."""
FEW_SUMS = 50_000
"""Up to here they are rows as others."""
SWITCHED = "spark.realmgate.switched"
"""The names of those that are ours to switch while a session goes on."""
_JUDGED_BY = {"spark.sql.session.timeZone": "UTC", "spark.sql.ansi.enabled": "true"}
"""Another value would change what is found."""
_EVERYWHERE = {
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.sql.ui.retainedExecutions": "10",
}
"""The last but one: for each column that a plan names, where in Python it was named; a fifth of the time of a small
run. The last one: of each query that has ended, its plan is kept for a page that is off."""
_LAUNCHED = {"spark.app.name": "realmgate reconcile", "spark.driver.memory": _MEMORY, "spark.ui.enabled": "false"}
"""Where the JVM is ours to start."""
_ONE_MACHINE = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": _MANY["spark.sql.shuffle.partitions"],
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
    "spark.buffer.pageSize": "1m",
    "spark.sql.leafNodeDefaultParallelism": "1",
}
"""The last three: folders are listed by the driver, and not by jobs of many tasks. Each table of hashes of each task
takes a page at least, of 64 MB where Spark chooses: collecting them took a fifth of the processor time. A table that
the planner holds is broadcast by one task, and not by one for each core: a plan has ten of them."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What the command line asks of Spark. `master`: None for one machine, or what spark-submit has set."""

    master: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)


def checked(options: Asked, submitted: Mapping[str, str] | None) -> dict[str, str]:
    """What is asked for, by Spark's names. `submitted`: what spark-submit has set; None: it has not started us. What
    it has set cannot be changed any more, or is not ours to change."""
    wanted = dict(options.conf) if options.master is None else {**options.conf, MASTER: options.master}
    if wanted.get("spark.jars.packages"):
        remedy = "fetch the jars before, and name them by --conf spark.jars=FILE,FILE"
        raise SettingsError(f"--conf spark.jars.packages: a reconciliation downloads nothing; {remedy}")
    for name, value in _JUDGED_BY.items():
        if wanted.get(name, value) != value:
            raise SettingsError(f"--conf {name}={wanted[name]}: what is found depends on it; it is always {value}")
    for name, value in wanted.items():
        if submitted is not None and submitted.get(name, value) != value:
            what = f"--master {value}" if name == MASTER else f"--conf {name}={value}"
            raise SettingsError(
                f"{what}: spark-submit has set {name}={submitted[name]}; write it there, or leave it out"
            )
    return wanted


def settings(
    wanted: Mapping[str, str],
    submitted: Mapping[str, str] | None,
    *,
    scratch: Path,
    offsets: int,
    jars: Sequence[Path],
    cores: int,
    archive: Path | None = None,
    of_sums: bool = False,
) -> dict[str, str]:
    """All that a session is made with. `wanted`: see `checked`; `offsets`: how many there are to read, at most.
    `archive`: Java's own, of Spark's classes. `of_sums`: partial aggregates are to be judged, which are few rows."""
    if submitted is not None:
        unset = {name: value for name, value in _EVERYWHERE.items() if name not in submitted}
        return {**unset, **wanted, **_JUDGED_BY}
    master = wanted.get(MASTER, "")
    first_compiler = not master and (of_sums or offsets <= SMALL_OFFSETS)
    ours = {MASTER: _LOCAL.format(cores=cores), **_EVERYWHERE, **_LAUNCHED}
    ours |= {"spark.local.dir": str(scratch / "spill"), "spark.sql.warehouse.dir": str(scratch / "warehouse")}
    if not master or master.startswith("local"):
        ours |= _ONE_MACHINE
    if not master:
        ours |= {**plans_for(offsets), SWITCHED: " ".join(name for name in _FEW if name not in wanted)}
    return {**ours, **wanted, **_added(wanted, first_compiler, jars, archive), **_JUDGED_BY}


def plans_for(offsets: int) -> dict[str, str]:
    """What is best for plans that read so many."""
    return _FEW if offsets <= SMALL_OFFSETS else _MANY


def plans_for_sums(rows: int) -> dict[str, str]:
    """The same for plans that add so many partial aggregates up, and read the rows of few blocks."""
    return _FEW if rows <= FEW_SUMS else _SUMS


def _added(
    wanted: Mapping[str, str], first_compiler: bool, jars: Sequence[Path], archive: Path | None
) -> dict[str, str]:
    """Settings that are lists: what is asked for comes to ours."""
    log = [f"-Dlog4j2.configurationFile={_LOG.as_uri()}"] if _LOG.is_file() else []  # it is not, inside an archive
    is_used = archive is not None and _ARCHIVING not in wanted.get(JAVA, "")
    loaded = [shlex.quote(f"-XX:SharedArchiveFile={archive}")] if is_used else []
    compiler = [_FIRST_COMPILER] if first_compiler else []
    java = [*log, *loaded, "-XX:+UseParallelGC", *compiler, wanted.get(JAVA, "")]
    files = [*map(str, jars), *filter(None, [wanted.get(JARS)])]
    return {JAVA: " ".join(filter(None, java)), **({JARS: ",".join(files)} if files else {})}
