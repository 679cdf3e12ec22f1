"""Which lane of its node a message asks for: a group's, a priority's, or none; and the message that asks for it."""

from __future__ import annotations

from enum import Enum
from random import Random
from typing import NamedTuple

from tests.torture.peers.codec import NULL, TRUE, binary, described, items, string, ubyte

DEFAULT_PRIORITY = 4  # of a message that names none
GROUPS = ["", "", "", *(f"group-{number}" for number in range(12))]


class Lane(NamedTuple):
    """`group` "": none."""

    group: str = ""
    priority: int = DEFAULT_PRIORITY


class Lanes(Enum):
    """What a publisher asks for."""

    NONE = "none"
    GROUPS = "groups, or none"
    PRIORITIES = "priorities"

    def any(self, random: Random) -> Lane:
        if self is Lanes.GROUPS:
            return Lane(group=random.choice(GROUPS))
        return Lane(priority=random.randrange(10)) if self is Lanes.PRIORITIES else Lane()


def message(lane: Lane, name: str, body: bytes) -> bytes:
    """With first-acquirer: the one who gives it again says false there. `name`: the message-id."""
    priority = NULL if lane.priority == DEFAULT_PRIORITY else ubyte(lane.priority)
    header = described(0x70, items(NULL, priority, NULL, TRUE))
    group = [*[NULL] * 9, string(lane.group)] if lane.group else []
    return header + described(0x73, items(string(name), *group)) + described(0x75, binary(body))
