"""The words of `realmgate send` and `receive`, as the command line takes them."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from gateway.cli.configuration.search import add_config
from gateway.cli.typed_numbers import number_from_1, seconds_above_0

_USER = "may name user and password; without: REALMGATE_USER and REALMGATE_PASSWORD in the environment"
_LISTENER = "default: the first AMQP listener of the configuration"


def add_client(commands: argparse._SubParsersAction[Any]) -> None:
    send = commands.add_parser("send", help="send messages over AMQP, and print their outcomes", allow_abbrev=False)
    send.add_argument("--body", metavar="TEXT", help="-: what stdin holds; default: message 1, message 2, ...")
    send.add_argument("--subject", metavar="TEXT")
    send.add_argument("--property", metavar="KEY=VALUE", action="append", default=[], help="may be repeated")
    durable = send.add_mutually_exclusive_group()
    durable.add_argument("--durable", action="store_true", default=True, help="the default")
    durable.add_argument("--non-durable", dest="durable", action="store_false")
    receive = commands.add_parser("receive", help="receive messages over AMQP, and settle them", allow_abbrev=False)
    outcome = receive.add_mutually_exclusive_group()
    for word in ("accept", "release", "reject"):
        about = "the default" if word == "accept" else None
        outcome.add_argument(f"--{word}", dest="outcome", action="store_const", const=word, help=about)
    receive.set_defaults(outcome="accept")
    receive.add_argument("--json", action="store_true", help="an object in each line")
    for parser in (send, receive):
        parser.add_argument("node", metavar="NODE", help="an address; a prefix may say of which kind: topic://news")
        parser.add_argument("--count", metavar="N", type=number_from_1, default=1, help="default: 1")
        parser.add_argument(
            "--timeout", metavar="S", type=seconds_above_0, default=10.0, help="default: 10; for each answer"
        )
        parser.add_argument(
            "--ca", metavar="FILE", type=Path, help="whose certificates count, PEM; default: as OpenSSL"
        )
        where = parser.add_mutually_exclusive_group()
        where.add_argument("--url", metavar="URL", help=f"amqp://HOST:PORT or amqps://HOST:PORT; {_USER}; {_LISTENER}")
        add_config(where)
