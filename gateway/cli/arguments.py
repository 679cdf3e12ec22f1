"""The arguments of `realmgate node`, `durable`, `queue`, `acl` and `user`. Imported at every start, so it needs next to
nothing."""

from __future__ import annotations

import argparse
from pathlib import Path

from gateway.cli.audit.arguments import add_behalf
from gateway.cli.configuration.search import add_config
from gateway.cli.node_properties import WORDS
from gateway.cli.typed_numbers import add_timeout, number_from_1, whole_number
from native_backend.nodes.durable import QUEUE
from native_backend.nodes.properties import OPERATIONS

_YES = "do not ask for confirmation (without a terminal no question is asked)"
_PARTITION = "only that one of a node that has several; default: all"
_WHERE = "only messages of which this selector is true, see docs/selectors.md"
_WHY = "for the audit: why it is done"


def add_node(node: argparse.ArgumentParser) -> None:
    actions = node.add_subparsers(dest="action", required=True, metavar="ACTION")
    create = actions.add_parser("create", help="create a node, or find it there", allow_abbrev=False)
    create.add_argument("name", metavar="NAME", help="any characters")
    create.add_argument("--kind", choices=("queue", "channel"), default="queue", help="default: queue")
    create.add_argument("--topic", metavar="EXISTING", help="adopt this topic with its records, instead of a new one")
    for word in WORDS:
        create.add_argument(f"--{word.key}", dest=f"property {word.key}", metavar=word.example, help=word.about)
    change = actions.add_parser("set", help="change a node's properties; the node may be in use", allow_abbrev=False)
    change.add_argument("name", metavar="NAME")
    change.add_argument("pairs", metavar="KEY=VALUE", nargs="+", help=", ".join(word.key for word in WORDS))
    listing = actions.add_parser("list", help="list nodes", allow_abbrev=False)
    listing.add_argument("name", metavar="NAME", nargs="?", help="only nodes of this name or pattern (*, ?)")
    export = actions.add_parser("export", help="write nodes as the file that apply takes", allow_abbrev=False)
    export.add_argument("name", metavar="NAME", nargs="?", help="only nodes of this name or pattern (*, ?)")
    show = actions.add_parser("show", help="show a node and its durables", allow_abbrev=False)
    show.add_argument("name", metavar="NAME")
    delete = actions.add_parser("delete", help="delete a node with its events", allow_abbrev=False)
    delete.add_argument("name", metavar="NAME")
    delete.add_argument("--with-topic", action="store_true", help="also delete a topic that was adopted")
    apply = actions.add_parser(
        "apply", help="make the nodes that a file describes; shows the changes", allow_abbrev=False
    )
    apply.add_argument("file", metavar="FILE", type=Path, help="YAML: a list of nodes")
    apply.add_argument("--dry-run", action="store_true", help="only show the difference")
    apply.add_argument("--prune", action="store_true", help="delete the nodes that the file does not name")
    for action in (create, change, delete, apply):
        action.add_argument("--why", default="", metavar="TEXT", help=_WHY)
    for action in (delete, apply):
        action.add_argument("--yes", action="store_true", help=_YES)
    for action in (create, change, listing, show):
        action.add_argument("--json", action="store_true", help="for programs")
    for action in actions.choices.values():
        add_config(action)
        add_timeout(action)


def add_durable(durable: argparse.ArgumentParser) -> None:
    actions = durable.add_subparsers(dest="action", required=True, metavar="ACTION")
    listing = actions.add_parser("list", help="list durables, and queues' own states", allow_abbrev=False)
    listing.add_argument("node", metavar="NODE", nargs="?", help="only this node's")
    show = actions.add_parser("show", help="show one", allow_abbrev=False)
    seek = actions.add_parser("seek", help="set the event that is delivered next", allow_abbrev=False)
    delete = actions.add_parser("delete", help="delete a durable and its position", allow_abbrev=False)
    for action in (show, seek, delete):
        action.add_argument("node", metavar="NODE")
        action.add_argument("durable", metavar="DURABLE", help="CONTAINER-ID:LINK-NAME")
    seek.add_argument("--to", required=True, metavar="PLACE", help="an EID, beginning, end, or a time with its zone")
    for action in (show, seek):
        action.add_argument("--partition", type=whole_number, metavar="N", help=_PARTITION)
    for action in (listing, show):
        action.add_argument("--json", action="store_true", help="for programs")
    for action in (seek, delete):
        action.add_argument("--why", default="", metavar="TEXT", help=_WHY)
        action.add_argument("--yes", action="store_true", help=_YES)
        add_behalf(action)
    for action in actions.choices.values():
        add_config(action)
        add_timeout(action)


def add_queue(queue: argparse.ArgumentParser) -> None:
    actions = queue.add_subparsers(dest="action", required=True, metavar="ACTION")
    peek = actions.add_parser("peek", help="show events that are not settled, without taking them", allow_abbrev=False)
    purge = actions.add_parser("purge", help="delete the events that no consumer holds", allow_abbrev=False)
    move = actions.add_parser("move", help="move events to another node, lowest EID first", allow_abbrev=False)
    resend = actions.add_parser("resend", help="send dead letters back to where they were", allow_abbrev=False)
    for action in (peek, purge, move, resend):
        action.add_argument("--where", default="", metavar="SELECTOR", help=_WHERE)
        action.add_argument("node", metavar="NODE")
        action.add_argument("--durable", default=QUEUE, metavar="NAME", help="of a channel; default: the queue itself")
        action.add_argument("--partition", type=whole_number, metavar="N", help=_PARTITION)
    peek.add_argument("--count", type=whole_number, default=10, metavar="N", help="default: 10")
    peek.add_argument("--from", dest="start", type=whole_number, default=0, metavar="EID", help="default: the lowest")
    peek.add_argument("--json", action="store_true", help="for programs")
    peek.add_argument("--sections", action="store_true", help="in JSON, the message in words instead of its octets")
    purge.add_argument(
        "--below", type=number_from_1, default=0, metavar="EID", help="only what lies below; default: all"
    )
    move.add_argument("--to", required=True, metavar="NODE", help="the node that gets exact copies")
    move.add_argument("--count", type=number_from_1, default=0, metavar="N", help="default: all")
    resend.add_argument(
        "--to-origin",
        action="store_true",
        required=True,
        help="each to the node that gave it up, in the same partition",
    )
    resend.add_argument("--dry-run", action="store_true", help="count by origin, and change nothing")
    resend.add_argument("--json", action="store_true", help="for programs")
    for action in (purge, move):
        action.add_argument("--dry-run", action="store_true", help="count the messages, and change nothing")
    for action in (purge, move, resend):
        action.add_argument("--why", default="", metavar="TEXT", help=_WHY)
        action.add_argument("--yes", action="store_true", help=_YES)
    for action in actions.choices.values():
        add_behalf(action)
        add_config(action)
        add_timeout(action)


def add_user(user: argparse.ArgumentParser) -> None:
    actions = user.add_subparsers(dest="action", required=True, metavar="ACTION")
    hashing = actions.add_parser(
        "hash", help="print an entry; prompts for the password, or reads one line of stdin", allow_abbrev=False
    )
    hashing.add_argument("name", metavar="NAME")
    hashing.add_argument("--group", metavar="GROUP", action="append", default=[], help="may be given several times")
    hashing.add_argument("--iterations", metavar="N", type=int, help="default: 100000")


def add_acl(acl: argparse.ArgumentParser) -> None:
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
