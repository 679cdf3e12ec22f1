"""The command line of `realmgate reconcile`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from reconciliation.engine.connector import default_directory
from reconciliation.model.settings import SettingsError
from reconciliation.model.window import BEGINNING, END, Window, parse

EVERY_LEAST_S, EVERY_MOST_S = 1, 86_400


def parsed(argv: Sequence[str]) -> argparse.Namespace:
    """Ends the process with exit code 2 where the words make no sense."""
    parser = _parser()
    arguments = parser.parse_args(argv)
    if problem := _problem(arguments):
        parser.error(problem)
    return arguments


def _problem(arguments: argparse.Namespace) -> str:
    """What is missing, or makes no sense together; empty: nothing."""
    missing = [f"--{name}" for name in ("config", "out") if getattr(arguments, name) is None]
    if arguments.acknowledge:
        return _problem_of_acknowledging(arguments)
    if arguments.history:
        return "--history wants --out DIR or --history-in DIR" if missing and not _names_history(arguments) else ""
    if arguments.json:
        return "--json goes with --history"
    if missing and not arguments.fetch_jars:
        return f"the following arguments are required: {', '.join(missing)}"
    if arguments.ledgers is not None and arguments.every is not None:
        return "--ledgers does not go with --every: all messages are read for it"
    if arguments.every is not None and arguments.state is None:
        return "--every wants --state DIR: each reconciliation continues from the one before"
    if arguments.sums is not None and arguments.state is None:
        return "--sums and --no-sums want --state DIR: the increments are kept there"
    return "--listen goes with --every" if arguments.listen is not None and arguments.every is None else ""


def _problem_of_acknowledging(arguments: argparse.Namespace) -> str:
    missing = [f"--{name}" for name in _SAID if getattr(arguments, f"acknowledged_{name}") is None]
    if missing:
        return f"--acknowledge wants {', '.join(missing)} too: until when, who says so, and why"
    return "" if _names_history(arguments) else "--acknowledge wants --out DIR or --history-in DIR"


_SAID = ("until", "by", "reason")


def _names_history(arguments: argparse.Namespace) -> bool:
    return arguments.out is not None or arguments.history_in is not None


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE")
    return name.strip(), value


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="realmgate reconcile", description="Judge everything that happened in a realm."
    )
    parser.add_argument("--config", metavar="FILE", type=Path, help="the gateway's configuration file")
    parser.add_argument("--out", metavar="DIR|URI", help="directory for the landed records and the report")
    parser.add_argument(
        "--state",
        metavar="DIR|URI",
        help="continue from what an earlier reconciliation has left there, and leave it for the next one",
    )
    parser.add_argument(
        "--sums",
        action=argparse.BooleanOptionalAction,
        help="with --state: judge by the sums that each increment keeps, where they can tell; --no-sums: by all rows",
    )
    parser.add_argument(
        "--ledgers",
        metavar="DIR|URI",
        help="compare what clients have noted there (*.jsonl) with messages and outcomes; reads the messages too",
    )
    _add_every(parser)
    add_window(parser, "report")
    _add_history(parser)
    add_spark(parser)
    parser.add_argument(
        "--fetch-jars",
        metavar="DIR",
        type=Path,
        nargs="?",
        const=default_directory(),
        help="fetch Spark's connector for Kafka, archive Spark's classes so that it starts faster, and do nothing else",
    )
    return parser


def _add_every(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--every",
        metavar="SECONDS",
        type=_interval,
        help="reconcile again and again, this long from one beginning to the next, until it is stopped; wants --state",
    )
    parser.add_argument(
        "--listen",
        metavar="[HOST:]PORT",
        type=_address,
        help="with --every: answer GET /metrics and GET /verdict there; HOST is 127.0.0.1 where none is named",
    )


def _interval(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not EVERY_LEAST_S <= seconds <= EVERY_MOST_S:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds from {EVERY_LEAST_S} to {EVERY_MOST_S:,}")
    return seconds


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not port.isascii() or not port.isdigit() or int(port) > 65_535:
        raise argparse.ArgumentTypeError(f"{text!r} is not [HOST:]PORT")
    return host.removeprefix("[").removesuffix("]") or "127.0.0.1", int(port)


def _add_history(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--history-in", metavar="DIR|URI", help="where a record of each reconciliation is kept; default: OUT/history"
    )
    parser.add_argument(
        "--since-last",
        action="store_true",
        help="name only what the reconciliation before did not have; exit code 1 where there is any of that, else 0",
    )
    parser.add_argument(
        "--history", action="store_true", help="print the records of earlier reconciliations, and do nothing else"
    )
    parser.add_argument("--json", action="store_true", help="with --history: for programs")
    _add_acknowledged(parser)


def _add_acknowledged(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--acknowledged", metavar="FILE", type=Path, help="findings that are known; default: OUT/acknowledged.yaml"
    )
    parser.add_argument(
        "--acknowledge", metavar="ID", help="write a finding of the last reconciliation there, and do nothing else"
    )
    helps = ("the last day (UTC) on which it holds, YYYY-MM-DD", "who acknowledges it", "why it is accepted")
    for name, words in zip(_SAID, helps, strict=True):
        kind = {"until": "DAY", "by": "NAME", "reason": "TEXT"}[name]
        dest = f"acknowledged_{name}"
        parser.add_argument(f"--{name}", metavar=kind, dest=dest, help=f"with --acknowledge: {words}")


def add_window(parser: argparse.ArgumentParser, verb: str) -> None:
    """`verb`: what the command does with a time. `window_of` reads it."""
    parser.add_argument(
        "--from", metavar="ISO", dest="since", type=parse, default=BEGINNING, help=f"{verb} from this time on (UTC)"
    )
    parser.add_argument(
        "--to", metavar="ISO", dest="until", type=parse, default=END, help=f"{verb} what is before this time (UTC)"
    )


def window_of(arguments: argparse.Namespace) -> Window:
    """Raises SettingsError."""
    window = Window(arguments.since, arguments.until)
    if window.since >= window.until:
        raise SettingsError("--from must be before --to")
    return window


def add_spark(parser: argparse.ArgumentParser) -> None:
    """Where Spark runs, and with which settings."""
    parser.add_argument(
        "--master", metavar="URL", help="Spark's master; default: two cores of this machine, or what spark-submit says"
    )
    parser.add_argument(
        "--conf",
        metavar="KEY=VALUE",
        type=_setting,
        action="append",
        default=[],
        help="a setting of Spark; may be given several times",
    )
    parser.add_argument(
        "--jars",
        metavar="DIR",
        type=Path,
        help="where Spark's connector for Kafka is; default: where --fetch-jars puts it",
    )
