"""The words of `realmgate drain`, as the command line takes them."""

from __future__ import annotations

import argparse
from pathlib import Path

from gateway.cli.configuration.search import add_config
from gateway.cli.typed_numbers import seconds_above_0

FROM_USER, FROM_PASSWORD = "REALMGATE_FROM_USER", "REALMGATE_FROM_PASSWORD"
_FROM = f"amqp://HOST:PORT or amqps://HOST:PORT; user and password in it, or in {FROM_USER} and {FROM_PASSWORD}"
_URL = "where the messages go; user and password in it, or in REALMGATE_USER and REALMGATE_PASSWORD"
_LEDGER = "the queue there that says what has been moved; default: drain.QUEUE"
_EMPTY_AFTER = "the queue is empty when nothing comes for so long; default: its broker is asked, as AMQP has it"


def add_drain(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", metavar="FROM-URL", help=f"the broker that is left: {_FROM}")
    parser.add_argument("queue", metavar="QUEUE", help="its queue, as an AMQP 1.0 address of that broker")
    parser.add_argument(
        "--to", metavar="NODE", action="append", default=[], help="default: QUEUE; several: each gets every message"
    )
    parser.add_argument("--ledger", metavar="NODE", help=_LEDGER)
    parser.add_argument("--from-ca", metavar="FILE", type=Path, help="whose certificates count at FROM-URL, PEM")
    parser.add_argument("--ca", metavar="FILE", type=Path, help="the same for where the messages go")
    parser.add_argument(
        "--timeout", metavar="S", type=seconds_above_0, default=60.0, help="default: 60; for each answer"
    )
    parser.add_argument("--empty-after", metavar="S", type=seconds_above_0, help=_EMPTY_AFTER)
    parser.add_argument("--json", action="store_true", help="for programs")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--url", metavar="URL", help=f"{_URL}; default: the first AMQP listener of the configuration")
    add_config(where)
