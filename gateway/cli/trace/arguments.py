"""The words of `realmgate trace`, as the command line takes them."""

from __future__ import annotations

import argparse

from gateway.cli.configuration.search import add_config
from gateway.cli.typed_numbers import add_timeout


def add_trace(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "what", metavar="TAG|RUN:SEQ", nargs="?", help="a delivery tag (STORE:EID), or a delivery of a gateway's run"
    )
    parser.add_argument("--message-id", metavar="ID", help="every message with it; reads all events")
    parser.add_argument("--node", metavar="NODE", help="with --message-id: only this node's events")
    gateway = "who holds the message now is asked there; may be repeated; default: admin.listen"
    parser.add_argument("--gateway", metavar="URL", action="append", help=gateway)
    parser.add_argument("--json", action="store_true", help="for programs")
    add_config(parser)
    add_timeout(parser)
