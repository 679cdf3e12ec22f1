"""Commands on acknowledgement state: what an operator asks of the owner of a shard, and what it answers.

A command is a record of `<prefix>.commands`, its reply one of `<prefix>.answers`; both have the command's id as key.
What was done stands in the journal under the cause `command ID`. Times are microseconds since 1970. Records:
docs/records.md "Command". May import: the standard library, orjson, `native_backend.answers`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

import orjson

from native_backend.answers import CommandAnswer

What = Literal["purge", "seek", "delete", "move", "delete-node"]
_VERSION = 1


@dataclass(frozen=True, slots=True)
class Command:
    """One wish. `store` makes sure that the node is still the one that was looked at. `durable`: empty where the whole
    node is meant (delete-node)."""

    id: str
    what: What
    node: str
    store: int
    durable: str
    until_us: int
    """Not begun after this."""
    eid: int = 0
    """purge: below this EID (0: all there is); seek: the next event to be given."""
    count: int = 0
    """move: so many events at most (0: all there are)."""
    to: str = ""
    """move: the node that gets them; delete-node: `topic` where one that was adopted goes, too."""


@dataclass(frozen=True, slots=True)
class Reply:
    """`count`: EIDs concerned, gaps included."""

    id: str
    answer: CommandAnswer
    count: int
    detail: str


def commands_topic(prefix: str) -> str:
    return f"{prefix}.commands"


def answers_topic(prefix: str) -> str:
    return f"{prefix}.answers"


def cause_of(command: Command) -> str:
    return f"command {command.id}"


def encode_command(command: Command, at_us: int) -> bytes:
    return orjson.dumps({"v": _VERSION, "at": at_us, **asdict(command)})


def decode_command(value: bytes) -> Command | None:
    """None for what a later release may have written."""
    record = _record(value)
    return None if record is None or record["what"] not in get_args(What) else Command(**record)


def encode_reply(reply: Reply, run: str, at_us: int) -> bytes:
    return orjson.dumps({"v": _VERSION, "at": at_us, "run": run, **asdict(reply)})


def decode_reply(value: bytes) -> Reply | None:
    record = _record(value)
    return None if record is None else Reply(record["id"], record["answer"], record["count"], record["detail"])


def _record(value: bytes) -> dict[str, Any] | None:
    record: dict[str, Any] = orjson.loads(value)
    if record.pop("v") != _VERSION:
        return None
    del record["at"]
    return record
