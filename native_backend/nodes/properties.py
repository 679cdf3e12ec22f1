"""What an operator sets on a node: bounds, times, targets, access. Frozen; a change is another `Properties`.

0 means unbounded, unlimited or at once; an empty name means none. Times are milliseconds, sizes bytes. Changed live: a
serving process sees a change within `RealmLimits.metadata_interval_s`. Records: docs/records.md "Node".
Errors: `PropertyError`, with everything that is wrong.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Literal, get_args

from native_backend.limits import PARTITIONS

NodeType = Literal["reliable", "persistent", "mixed"]
Redelivery = Literal["constant", "linear", "exponential"]
Operation = Literal["publish", "subscribe", "peek", "durable", "purge", "manage", "temporary", "any-durable"]
TYPES: tuple[NodeType, ...] = get_args(NodeType)
REDELIVERIES: tuple[Redelivery, ...] = get_args(Redelivery)
OPERATIONS: tuple[Operation, ...] = get_args(Operation)
"""What a grant may allow, in the words of UM: publish or push, subscribe or pop, peek, use a named durable, purge,
manage, make temporary nodes; and what UM has no word for: use durables of other users."""
_COUNTS = ("capacity_events", "capacity_bytes", "ttl_ms", "attempts", "redelivery_delay_ms", "redelivery_delay_max_ms")
_COUNT_MAX = 2**53 - 1  # what every reader of JSON keeps exactly


class PropertyError(Exception):
    """Properties that no node can have; one line each in `problems`."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


@dataclass(frozen=True, slots=True)
class Grant:
    """`who` is `user:NAME`, `group:NAME` or `*` (every user)."""

    who: str
    operations: frozenset[str]


@dataclass(frozen=True, slots=True)
class Properties:
    """The defaults: nothing is bounded, nothing expires, every user may do everything."""

    type: NodeType = "mixed"
    """As in Universal Messaging. Every event is stored; a reliable node may be without copies on other brokers."""
    capacity_events: int = 0
    capacity_bytes: int = 0
    honour_capacity: bool = False
    """A full node refuses (True), or gives up its oldest events (False)."""
    ttl_ms: int = 0
    dead_letter: str = ""
    """The node that gets what expired, was rejected or failed too often."""
    attempts: int = 0
    redelivery_delay_ms: int = 0
    redelivery_delay_max_ms: int = 0
    redelivery: Redelivery = "constant"
    """How the delay grows with the attempts."""
    acl: tuple[Grant, ...] = ()
    partitions: int = 1
    """Stores that its events are spread over; it may grow. Not beside `priority_levels`."""
    priority_levels: int = 0
    """Levels of priority, each one a partition; 0: none."""
    group_partitions: int = 0
    """Message groups go to the first so many partitions, those that there were before it grew (`grown`); 0: to all."""

    @property
    def stores(self) -> int:
        return max(self.partitions, self.priority_levels)


DEFAULT = Properties()
NAMES = tuple(field.name for field in fields(Properties))
PARTITIONING = ("partitions", "priority_levels")
OF_SEVERAL = (*PARTITIONING, "group_partitions")  # told in records only where there are several stores


def encode_acl(acl: tuple[Grant, ...]) -> list[dict[str, Any]]:
    return [{"who": grant.who, "operations": sorted(grant.operations)} for grant in acl]


def decode_acl(acl: list[dict[str, Any]]) -> tuple[Grant, ...]:
    return tuple(Grant(grant["who"], frozenset(grant["operations"])) for grant in acl)


def encode_properties(properties: Properties) -> dict[str, Any]:
    """Every property by name, as JSON has it."""
    values = {name: getattr(properties, name) for name in NAMES}
    return values | {"acl": encode_acl(properties.acl)}


def decode_properties(record: dict[str, Any]) -> Properties:
    """What `encode_properties` made; a property that is not there has its default."""
    return Properties(**(record | {"acl": decode_acl(record.get("acl", []))}))


def check_properties(properties: Properties, node: str) -> None:
    """Raises `PropertyError` unless the node of that name can have them."""
    problems = [
        f"{name} is {value!r}: a whole number from 0 (none) to {_COUNT_MAX}"
        for name in _COUNTS
        if type(value := getattr(properties, name)) is not int or not 0 <= value <= _COUNT_MAX
    ]
    problems += _counts_of_stores(properties)
    if type(properties.honour_capacity) is not bool:
        problems.append(f"honour_capacity is {properties.honour_capacity!r}: true or false")
    problems += _words(properties)
    if type(properties.dead_letter) is not str:
        problems.append(f"dead_letter is {properties.dead_letter!r}: the name of a node")
    elif node and properties.dead_letter == node:
        problems.append(f"dead_letter is {node!r} itself: name another node")
    problems += check_acl(properties.acl)
    if not problems:
        problems = _contradictions(properties)
    if problems:
        raise PropertyError(problems)


def check_acl(acl: tuple[Grant, ...]) -> list[str]:
    """What is wrong with a list of grants."""
    problems = []
    for grant in acl:
        kind, _, name = grant.who.partition(":")
        if grant.who != "*" and (kind not in ("user", "group") or not name):
            problems.append(f"acl grants to {grant.who!r}: write user:NAME, group:NAME or *")
        unknown = sorted(grant.operations - set(OPERATIONS))
        if unknown:
            problems.append(f"acl grants {', '.join(unknown)} to {grant.who}: there are {', '.join(OPERATIONS)}")
        if not grant.operations:
            problems.append(f"acl grants nothing to {grant.who}: remove the line, or name operations")
    return problems


def _words(properties: Properties) -> list[str]:
    problems = []
    if properties.type not in TYPES:
        problems.append(f"type is {properties.type!r}: {', '.join(TYPES)}")
    if properties.redelivery not in REDELIVERIES:
        problems.append(f"redelivery is {properties.redelivery!r}: {', '.join(REDELIVERIES)}")
    return problems


def _counts_of_stores(properties: Properties) -> list[str]:
    return [
        f"{name} is {value!r}: a whole number from {least} to {PARTITIONS}"
        for name, least in zip(PARTITIONING, (1, 0), strict=True)
        if type(value := getattr(properties, name)) is not int or not least <= value <= PARTITIONS
    ]


def check_change(before: Properties, after: Properties) -> None:
    """Raises `PropertyError` where a node that lives cannot come from the one to the other."""
    problems = []
    if after.partitions < before.partitions:
        problems.append(
            f"partitions {after.partitions} are fewer than the {before.partitions} there are: they only grow"
        )
    if after.priority_levels != before.priority_levels:
        problems.append(
            f"priority_levels {before.priority_levels} -> {after.priority_levels}: they are fixed when a node is "
            "created (events that are there would be overtaken); create another node and move the events"
        )
    if problems:
        raise PropertyError(problems)


def grown(before: Properties, after: Properties) -> Properties:
    """What a node has after a change: its groups stay in the partitions that they are in, for their order's sake."""
    groups = before.group_partitions
    if not groups and after.partitions > before.partitions:
        groups = before.partitions
    return replace(after, group_partitions=groups)


def _contradictions(properties: Properties) -> list[str]:
    """What is legal by itself and makes no sense together."""
    problems = []
    if properties.priority_levels and properties.partitions > 1:
        problems.append("partitions beside priority_levels: every level is a partition; leave partitions out")
    if properties.honour_capacity and not (properties.capacity_events or properties.capacity_bytes):
        problems.append("honour_capacity without a capacity: set capacity_events or capacity_bytes")
    if properties.redelivery != "constant" and not properties.redelivery_delay_ms:
        problems.append(f"redelivery {properties.redelivery} without a delay to grow: set redelivery_delay_ms")
    top = properties.redelivery_delay_max_ms
    if top and top < properties.redelivery_delay_ms:
        problems.append(f"redelivery_delay_max_ms {top} is below redelivery_delay_ms {properties.redelivery_delay_ms}")
    return problems
