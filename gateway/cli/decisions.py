"""`realmgate decisions list`: what tables decided about peers beside deliveries (refused attaches, faults, ended
subscriptions, declares and discharges), as the outcome records have it. Works beside a serving gateway or without one.

Exit codes: 0 done. Errors: `LogError`, printed by `gateway.cli.main`.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any, TextIO

from gateway.cli.configuration.search import add_config
from gateway.cli.output import printable, time_of, write_json, write_table
from gateway.cli.typed_numbers import add_timeout

if TYPE_CHECKING:
    from gateway.config.settings import Settings
    from native_backend.log.port import Log

_TITLES = ("TIME", "WHAT", "COUNT", "USER", "CONTAINER", "ADDRESS", "NODE", "RULE", "CONDITION")
WHATS = ("attach", "fault", "subscription", "publisher", "declare", "commit", "rollback", "unreadable")


def add_decisions(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    listing = actions.add_parser("list", help="oldest first", allow_abbrev=False)
    listing.add_argument("--what", choices=WHATS, help="these only")
    listing.add_argument("--user", metavar="NAME", help="of this user only")
    listing.add_argument("--json", action="store_true", help="every field, as a JSON array")
    add_config(listing)
    add_timeout(listing)


def run(arguments: argparse.Namespace, settings: Settings, out: TextIO) -> int:
    """One command; its exit code."""
    from gateway.cli.answering_log import open_answering

    with closing(open_answering(settings, arguments.timeout)) as log:
        refusals = [
            decision
            for decision in _decisions(log, f"{settings.realm.prefix}.outcomes")
            if arguments.what in (None, decision["what"]) and arguments.user in (None, decision.get("user"))
        ]
    if arguments.json:
        write_json(refusals, out)
    else:
        write_table(_TITLES, [_row(refusal) for refusal in refusals], out)
    return 0


def _decisions(log: Log, topic: str) -> Iterator[dict[str, Any]]:
    from gateway.cli.stored_tables import documents

    for record in documents(log, topic):
        for decision in record.get("decisions", ()):
            yield {"run": record["run"], "at": record["at"], **decision}


def _row(decision: dict[str, Any]) -> tuple[str, ...]:
    at = time_of(decision["at"])
    if "left_out" in decision:
        return (at, decision["what"], str(decision["left_out"]), *["-"] * 4, "(left out)", "-")
    side = "answer_" if "answer_rule" in decision else ""
    rule = f"{decision[f'{side}table']}.{decision[f'{side}rule']}" if f"{side}rule" in decision else "-"
    names = [printable(str(decision.get(key) or "-")) for key in ("user", "container", "address", "node")]
    return (at, decision["what"], str(decision["count"]), *names, rule, decision.get("condition") or "-")
