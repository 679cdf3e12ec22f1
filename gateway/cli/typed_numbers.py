"""Numbers as the command line takes them."""

from __future__ import annotations

import argparse
from typing import Final

ANSWER_S: Final = 5.0
"""For the first answer of a log."""


def whole_number(text: str) -> int:
    if not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text} is no whole number from 0")
    return int(text)


def number_from_1(text: str) -> int:
    """Where 0 would be all, or nothing: a script that meant nothing must not get all."""
    number = whole_number(text)
    if not number:
        raise argparse.ArgumentTypeError("0 means nothing: give a number from 1, or leave it out")
    return number


def seconds_above_0(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 1e6:
        raise argparse.ArgumentTypeError(f"{text} is no number of seconds above 0")
    return seconds


def add_timeout(parser: argparse.ArgumentParser) -> None:
    about = f"for the log's first answer; default: {ANSWER_S:g}"
    parser.add_argument("--timeout", metavar="S", type=seconds_above_0, default=ANSWER_S, help=about)
