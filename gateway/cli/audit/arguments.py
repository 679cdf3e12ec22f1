"""The words of `realmgate audit`, as the command line takes them, and `--as USER` of the commands that it lists."""

from __future__ import annotations

import argparse

from gateway.cli.audit.since import since_us
from gateway.cli.configuration.search import add_config
from gateway.cli.typed_numbers import add_timeout


def add_audit(parser: argparse.ArgumentParser) -> None:
    since = "30s, 10m, 2h, 1d, or a time with its zone; default: all"
    parser.add_argument("--since", type=since_us, default=0, metavar="TIME", help=since)
    parser.add_argument("--json", action="store_true", help="every field, as a JSON array")
    add_config(parser)
    add_timeout(parser)


def add_behalf(parser: argparse.ArgumentParser) -> None:
    about = "for this user of the users file: refused where its grants do not allow it, and recorded as its command"
    parser.add_argument("--as", dest="behalf", default="", metavar="USER", help=about)
