"""Commands on acknowledgement state: what an operator asks of the owner of a shard, and what it answers.

A command is a record of `<prefix>.commands`, its reply one of `<prefix>.answers`; both have the command's id as key.
What was done stands in the journal under the cause `command ID`. Times are microseconds since 1970. Records:
docs/records.md "Command".
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

import orjson

from native_backend.nodes.words import CommandAnswer

What = Literal["purge", "seek", "delete", "move", "resend", "delete-node", "count"]
NotedWhat = Literal["create", "set", "grant", "revoke", "close-connection", "refused"]
_VERSION, _REPLY_VERSION = 2, 1
_OF_VERSION_2 = ("where", "who", "why")


@dataclass(frozen=True, slots=True)
class Command:
    """One wish. `store` makes sure that the node is still the one that was looked at. `durable`: empty where the whole
    node is meant (delete-node), or all of them (count, whose node may be empty, too)."""

    id: str
    what: What
    node: str
    store: int
    durable: str
    until_us: int
    """Not begun after this."""
    eid: int = 0
    """purge: below this EID (0: all there is); seek: the next event to be given; count: rows that are passed over."""
    count: int = 0
    """move: so many events at most (0: all there are); count: so many rows at most."""
    to: str = ""
    """move: the node that gets them; delete-node: `topic` where one that was adopted goes, too."""
    where: str = ""
    """purge, move, resend: a selector, of the messages that are meant; empty: all of them."""
    who: str = ""
    """gave it; empty: not known, or nothing is changed."""
    why: str = ""
    """In the words of who gave it."""


@dataclass(frozen=True, slots=True)
class Reply:
    """`count`: EIDs concerned, gaps included; for `count` the rows that there are, and `detail` has those asked for."""

    id: str
    answer: CommandAnswer
    count: int
    detail: str


@dataclass(frozen=True, slots=True)
class Note:
    """What an operator changed without the owner: it is recorded beside the commands, and not carried out by any
    reader. `node`: empty where the realm, or a connection, is meant. `change`: what, in words."""

    id: str
    what: NotedWhat
    node: str
    change: str
    who: str
    why: str = ""


def commands_topic(prefix: str) -> str:
    return f"{prefix}.commands"


def answers_topic(prefix: str) -> str:
    return f"{prefix}.answers"


def cause_of(command: Command) -> str:
    return f"command {command.id}"


def encode_command(command: Command, at_us: int) -> bytes:
    """In version 1 where that says all: an earlier release carries out what it knows, and ignores the rest."""
    record = asdict(command)
    version = _VERSION if any(record[name] for name in _OF_VERSION_2) else 1
    fields = {name: value for name, value in record.items() if version > 1 or name not in _OF_VERSION_2}
    return orjson.dumps({"v": version, "at": at_us, **fields})


def decode_command(value: bytes) -> Command | None:
    """None for what a later release may have written."""
    record = _record(value, _VERSION)
    return None if record is None or record["what"] not in get_args(What) else Command(**record)


def encode_note(note: Note, at_us: int) -> bytes:
    """A gateway of an earlier release ignores what it does not know, with a line in its log."""
    return orjson.dumps({"v": _VERSION, "at": at_us, **asdict(note)})


def decode_note(value: bytes) -> Note | None:
    """None for a command, and for what a later release may have written."""
    record = _record(value, _VERSION)
    return None if record is None or record["what"] not in get_args(NotedWhat) else Note(**record)


def given_at(value: bytes) -> int:
    """When a command or a reply was written, microseconds since 1970."""
    return int(orjson.loads(value)["at"])


def encode_reply(reply: Reply, run: str, at_us: int) -> bytes:
    return orjson.dumps({"v": _REPLY_VERSION, "at": at_us, "run": run, **asdict(reply)})


def decode_reply(value: bytes) -> Reply | None:
    record = _record(value, _REPLY_VERSION)
    return None if record is None else Reply(record["id"], record["answer"], record["count"], record["detail"])


def _record(value: bytes, latest: int) -> dict[str, Any] | None:
    record: dict[str, Any] = orjson.loads(value)
    if record.pop("v") > latest:
        return None
    del record["at"]
    return record
