"""`python -m reconciliation what-if --tables FILE --config FILE [--from ISO --to ISO] [--out DIR]`: what other tables
would have decided. FILE is an expanded document, as the realm keeps them under their digests; `realmgate what-if` makes
it of a folder or a profile.

Exit code: 0 nothing would have been different, 1 something would, or cannot be decided, 2 could not run. Progress goes
to standard error. Runs beside a live gateway.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TextIO

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from reconciliation.cli.arguments import add_spark, add_window, window_of
from reconciliation.cli.main import jars_of
from reconciliation.cli.places import scratch_of
from reconciliation.cli.progress import Progress, SparkWork
from reconciliation.engine import spark
from reconciliation.engine.spark_settings import MASTER, Asked
from reconciliation.model.errors import SetupError, SourceError
from reconciliation.model.folder import LocalFolder
from reconciliation.model.ranges import Extent, Kind
from reconciliation.model.settings import Realm, SettingsError, load_realm
from reconciliation.read import landing
from reconciliation.read.catalog import stored_tables
from reconciliation.read.stored_tables import digest_of
from reconciliation.report.summary import place
from reconciliation.what_if import text
from reconciliation.what_if.document import document, is_alike
from reconciliation.what_if.expanded_tables import ExpandedTables
from reconciliation.what_if.job import Question, what_if

ALIKE, DIFFERENT, COULD_NOT_RUN = 0, 1, 2
KINDS: tuple[Kind, ...] = ("outcomes", "tables")
REPORT = "what-if"
STEPS = 3
"""Landing, and two of `reconciliation.what_if.job.what_if`."""
_RECORD_OFFSETS = 100  # an outcome record is of many deliveries: so many offsets of other topics cost as much


def main(argv: Sequence[str], out: TextIO = sys.stdout) -> int:
    arguments = _parser().parse_args(argv)
    try:
        realm = load_realm(arguments.config)
        question = _question(arguments)
        options = Asked(arguments.master, dict(arguments.conf))
        spark.check(options)
        _check_place(options, arguments.out)
        jars = jars_of(realm, arguments.jars)
        extent = landing.extent_of(realm).only(realm.prefix, KINDS)
        with tempfile.TemporaryDirectory(prefix="realmgate-what-if-") as temporary:
            directory = arguments.out or Path(temporary)
            with scratch_of(directory) as scratch:
                session = spark.start(scratch, offsets=extent.offsets * _RECORD_OFFSETS, jars=jars, options=options)
                try:
                    answer = run(session, realm, extent, question, directory)
                finally:
                    spark.stop(session)
        _write(answer, arguments, out)
        return ALIKE if is_alike(answer) else DIFFERENT
    except (SettingsError, SourceError, SetupError, OSError) as error:
        sys.stderr.write(f"what-if: {error}\n")
    except (PySparkException, Py4JError) as error:
        sys.stderr.write(f"what-if: Spark failed: {error}\n")
    return COULD_NOT_RUN


def run(session: SparkSession, realm: Realm, extent: Extent, question: Question, directory: Path) -> dict[str, Any]:
    """With a session that is there: land below `directory`, decide; the answer as JSON. What is landed there already is
    not read again."""
    with Progress(SparkWork(session), "what-if", STEPS) as progress:
        progress.begin("landing outcome records and tables")
        folder = LocalFolder(directory / "landed-outcomes")
        landed = landing.land(realm, extent, session, folder, KINDS, progress.note)
        unreadable: list[str] = []
        answer = what_if(session, landed, stored_tables(landed, unreadable), question, progress.begin)
        unread = [*(gap.words for gap in landed.extent.unread), *unreadable]
        progress.end("done")
    return document(answer, question, place(realm), unread)


def _write(answer: dict[str, Any], arguments: argparse.Namespace, out: TextIO) -> None:
    as_json, words = json.dumps(answer, indent=1) + "\n", text.write(answer)
    if arguments.out is not None:
        (arguments.out / f"{REPORT}.json").write_text(as_json)
        (arguments.out / f"{REPORT}.txt").write_text(words)
    out.write(as_json if arguments.json else words)


def _check_place(options: Asked, out: Path | None) -> None:
    """Executors elsewhere do not see the temporary directory of this machine."""
    master = options.master or (spark.submitted() or {}).get(MASTER, "local")
    if out is None and not master.startswith("local"):
        raise SettingsError(f"--master {master}: name --out DIR, on a file system that the executors have, too")


def _question(arguments: argparse.Namespace) -> Question:
    assumed = dict(assumption.split("=", 1) for assumption in arguments.assume)
    tables = _read_tables(arguments.tables)
    return Question(arguments.name or str(arguments.tables), tables, window_of(arguments), assumed, arguments.lines)


def _read_tables(file: Path) -> ExpandedTables:
    try:
        read = json.loads(file.read_bytes())
        tables = ExpandedTables(read)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SettingsError(f"{file} holds no expanded tables ({error}): realmgate what-if writes them") from error
    if digest_of(read) != tables.digest:
        raise SettingsError(f"{file}: these tables do not have the digest {tables.digest} that stands with them")
    return tables


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m reconciliation what-if", description="What other tables would have decided."
    )
    parser.add_argument("--config", type=Path, required=True, help="the gateway's configuration file")
    parser.add_argument("--tables", type=Path, required=True, metavar="FILE", help="an expanded document, as JSON")
    parser.add_argument("--name", default="", metavar="TEXT", help="what the report calls these tables")
    add_window(parser, "decide")
    parser.add_argument(
        "--assume", type=_assumption, action="append", default=[], metavar="FACT=VALUE",
        help="of a fact that the report names as not recorded; may be repeated",
    )  # fmt: skip
    parser.add_argument("--lines", type=int, default=10, metavar="N", help="nodes and peers of a change; default: 10")
    parser.add_argument("--out", type=Path, metavar="DIR", help="keep the answer there, and what was landed")
    parser.add_argument("--json", action="store_true", help="for programs")
    add_spark(parser)
    return parser


def _assumption(text_: str) -> str:
    fact, equals, value = text_.partition("=")
    if not (fact and equals and value):
        raise argparse.ArgumentTypeError(f"{text_} is no FACT=VALUE")
    return text_
