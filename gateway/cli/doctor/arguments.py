"""The words of `realmgate doctor`, as the command line takes them."""

from __future__ import annotations

import argparse
from pathlib import Path

from gateway.cli.configuration.search import add_config
from gateway.cli.typed_numbers import ANSWER_S, seconds_above_0


def add_doctor(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--reports", metavar="DIR", type=Path, help="the directory that reconcile --out was given")
    parser.add_argument("--json", action="store_true", help="for programs")
    parser.add_argument(
        "--timeout", metavar="S", type=seconds_above_0, default=ANSWER_S, help=f"for all of it; default: {ANSWER_S:g}"
    )
    add_config(parser)
