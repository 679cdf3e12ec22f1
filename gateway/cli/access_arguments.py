"""The arguments of `realmgate acl` and `realmgate user`. Imported at every start, so it needs next to nothing."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from gateway.cli.typed_numbers import add_timeout
from native_backend.nodes.properties import OPERATIONS

AddConfig = Callable[[argparse.ArgumentParser], None]


def add_user(user: argparse.ArgumentParser) -> None:
    actions = user.add_subparsers(dest="action", required=True, metavar="ACTION")
    hashing = actions.add_parser(
        "hash", help="print an entry; prompts for the password, or reads one line of stdin", allow_abbrev=False
    )
    hashing.add_argument("name", metavar="NAME")
    hashing.add_argument("--group", metavar="GROUP", action="append", default=[], help="may be given several times")
    hashing.add_argument("--iterations", metavar="N", type=int, help="default: 15000")


def add_acl(acl: argparse.ArgumentParser, add_config: AddConfig) -> None:
    actions = acl.add_subparsers(dest="action", required=True, metavar="ACTION")
    words = f"{', '.join(OPERATIONS)} or full, with commas"
    for name, about, least in (("grant", "allow", 1), ("revoke", "allow no more; without OPERATIONS nothing", 0)):
        action = actions.add_parser(name, help=about, allow_abbrev=False)
        action.add_argument("who", metavar="WHO", help="user:NAME, group:NAME or '*'")
        action.add_argument("operations", metavar="OPERATIONS", nargs=None if least else "?", help=words)
        action.add_argument("--why", default="", metavar="TEXT", help="for the audit: why it is done")
        if name == "revoke":
            action.add_argument("--open", action="store_true", help="also remove the last grant: then all users may")
    listing = actions.add_parser("list", help="show the grants", allow_abbrev=False)
    listing.add_argument("--json", action="store_true", help="for programs")
    check = actions.add_parser("check", help="may this user do that, and by which grant?", allow_abbrev=False)
    check.add_argument("who", metavar="USER", help="a name in the users file; anonymous: a client without a user name")
    check.add_argument("operations", metavar="OPERATIONS", help=words)
    for action in actions.choices.values():
        place = action.add_mutually_exclusive_group(required=True)
        place.add_argument("--node", metavar="NAME")
        place.add_argument("--realm", action="store_true", help="the realm's own grants, which hold for every node")
        add_config(action)
        add_timeout(action)
