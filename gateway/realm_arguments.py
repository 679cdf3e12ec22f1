"""The words of `realmgate node`, as the command line takes them.

May import: `gateway.property_words`, the standard library.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from gateway.property_words import WORDS

_YES = "do not ask (nobody is asked without a terminal)"
AddConfig = Callable[[argparse.ArgumentParser], None]


def add_node(node: argparse.ArgumentParser, add_config: AddConfig) -> None:
    actions = node.add_subparsers(dest="action", required=True, metavar="ACTION")
    create = actions.add_parser("create", help="create a node, or find it there", allow_abbrev=False)
    create.add_argument("name", metavar="NAME", help="any characters")
    create.add_argument("--kind", choices=("queue", "channel"), default="queue", help="default: queue")
    create.add_argument("--topic", metavar="EXISTING", help="adopt this topic with its records, instead of a new one")
    create.add_argument("--partitions", type=int, default=1, metavar="N", help="1: a node has one partition")
    for word in WORDS:
        create.add_argument(f"--{word.key}", dest=f"property {word.key}", metavar=word.example, help=word.about)
    change = actions.add_parser("set", help="change a node's properties, also while it is used", allow_abbrev=False)
    change.add_argument("name", metavar="NAME")
    change.add_argument("pairs", metavar="KEY=VALUE", nargs="+", help=", ".join(word.key for word in WORDS))
    listing = actions.add_parser("list", help="list nodes", allow_abbrev=False)
    listing.add_argument("name", metavar="NAME", nargs="?", help="only nodes of this name; a pattern (*, ?) is welcome")
    show = actions.add_parser("show", help="show a node and its durables", allow_abbrev=False)
    show.add_argument("name", metavar="NAME")
    delete = actions.add_parser("delete", help="delete a node with its events", allow_abbrev=False)
    delete.add_argument("name", metavar="NAME")
    delete.add_argument("--with-topic", action="store_true", help="also delete a topic that was adopted")
    apply = actions.add_parser("apply", help="make the nodes as a file says; shows the difference", allow_abbrev=False)
    apply.add_argument("file", metavar="FILE", type=Path, help="YAML: a list of nodes")
    apply.add_argument("--dry-run", action="store_true", help="only show the difference")
    apply.add_argument("--prune", action="store_true", help="delete the nodes that the file does not name")
    for action in (delete, apply):
        action.add_argument("--yes", action="store_true", help=_YES)
    for action in (create, change, listing, show):
        action.add_argument("--json", action="store_true", help="for programs")
    for action in actions.choices.values():
        add_config(action)
