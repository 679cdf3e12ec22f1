"""The words of `realmgate doctor`, as the command line takes them."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path


def add_doctor(parser: argparse.ArgumentParser, add_config: Callable[[argparse.ArgumentParser], None]) -> None:
    parser.add_argument("--reports", metavar="DIR", type=Path, help="the directory that reconcile --out was given")
    parser.add_argument("--json", action="store_true", help="for programs")
    add_config(parser)
