"""The words of the commands that ask serving gateways, as the command line takes them."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, Final

from gateway.cli.audit.arguments import add_behalf
from gateway.cli.audit.since import since_us
from gateway.cli.configuration.search import add_config
from gateway.cli.typed_numbers import seconds_above_0, whole_number

_TIME: Final = "30s, 10m, 2h, 1d ago, or a time with its zone"
PROBLEMS_SHOWN: Final = 12
"""On one screen."""
STEPS: Final = ("minute", "5min", "15min", "hour")
"""Lines of the history. Source: `gateway.verdict.history`, which takes its time to import."""


def add_peers(commands: argparse._SubParsersAction[Any]) -> None:
    connections = commands.add_parser("connections", help="list the connections of serving gateways")
    links = commands.add_parser("links", help="list the links of serving gateways: credit, unsettled, outcomes")
    links.add_argument("--node", metavar="NAME", help="of this node only")
    for listing in (connections, links):
        listing.add_argument("--user", metavar="NAME", help="of this user only")
        listing.add_argument("--container", metavar="ID", help="of this container only")
        listing.add_argument("--json", action="store_true", help="every field, as the gateways answer")
    connection = commands.add_parser("connection", help="close a connection")
    actions = connection.add_subparsers(dest="action", required=True, metavar="ACTION")
    close = actions.add_parser("close", help="close one; its client may connect again", allow_abbrev=False)
    close.add_argument("id", metavar="ID", help="as `connections` shows it")
    close.add_argument("--reason", required=True, metavar="TEXT", help="for the peer and the log")
    add_behalf(close)
    errors = commands.add_parser("errors", help="list the last refusals and faults", allow_abbrev=False)
    errors.add_argument("--node", metavar="NAME", help="of this node only")
    errors.add_argument("--container", metavar="ID", help="of this container only")
    errors.add_argument("--condition", metavar="CONDITION", help="with this condition only")
    denials = commands.add_parser("denials", help="list what was refused for want of a right", allow_abbrev=False)
    for listing in (errors, denials):
        listing.add_argument(
            "--since", type=since_us, metavar="TIME", help="no older than 30s, 10m, 2h, 1d, or a time with its zone"
        )
        listing.add_argument("--user", metavar="NAME", help="of this user only")
        listing.add_argument("--json", action="store_true", help="every field, as the gateways answer")
    problems = commands.add_parser("problems", help="say what is wrong now, with the remedy", allow_abbrev=False)
    problems.add_argument("--reports", metavar="DIR", type=Path, help="the directory that reconcile --out was given")
    problems.add_argument("--all", action="store_true", help=f"more than {PROBLEMS_SHOWN}")
    problems.add_argument("--json", action="store_true", help="for programs")
    top = commands.add_parser("top", help="show the rates of nodes and links", allow_abbrev=False)
    top.add_argument(
        "--interval", metavar="S", type=seconds_above_0, default=2.0, help="between two readings; default: 2"
    )
    top.add_argument(
        "--times", metavar="N", type=whole_number, default=1, help="default: 1; 0: until it is interrupted"
    )
    top.add_argument("--links", metavar="N", type=whole_number, default=20, help="so many of the fastest; default: 20")
    top.add_argument("--json", action="store_true", help="every field and link")
    history = commands.add_parser("history", help="show what was counted, by minute or hour", allow_abbrev=False)
    history.add_argument("--since", type=since_us, metavar="TIME", help=f"{_TIME}; default: 1h before the end")
    history.add_argument("--until", type=since_us, metavar="TIME", help=f"the end, {_TIME}; default: now")
    history.add_argument("--by", choices=STEPS, help="one line for each; default: what fits on a screen")
    history.add_argument("--node", metavar="NAME", help="of this node only")
    history.add_argument("--stored", action="store_true", help="out of the realm itself, where no gateway answers")
    history.add_argument("--json", action="store_true", help="every field, as the gateways answer")
    for parser in (connections, links, errors, denials, problems, top, history):
        _add_gateways(parser.add_mutually_exclusive_group())
    _add_gateways(close)  # by both: who gives a command for a user needs the grants


def _add_gateways(where: argparse._ActionsContainer) -> None:
    add_config(where)
    where.add_argument(
        "--gateway", metavar="URL", action="append", help="an admin address; may be repeated; default: admin.listen"
    )
