"""What every part of one realm shares: the log below, the clock beside, the answers above.

May import: the standard library, `mappings.causes`, `native_backend` below it.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import cast

from mappings.causes import ANSWERS, told
from native_backend.answers import Answer, SubscribeAnswer
from native_backend.clock import Clock
from native_backend.control import Control
from native_backend.feed import Feeds
from native_backend.journal import Journal
from native_backend.lease import Lease
from native_backend.letter import Enclose
from native_backend.limits import RealmLimits
from native_backend.lobby import Lobby
from native_backend.log import Cause, Failure, Log, LogError
from native_backend.log_end import LogEnds
from native_backend.metadata import Metadata
from native_backend.nodes import Node
from native_backend.occupancy import Counted
from native_backend.selection import ScanBudget

_LOG = logging.getLogger(__name__)
_ANSWERS = cast("Mapping[Cause, SubscribeAnswer]", ANSWERS["attach"])
LASTING = told("later")  # failures of a read that waiting does not mend


@dataclass(frozen=True, slots=True)
class Services:
    """One realm's, for its whole life."""

    log: Log
    prefix: str
    run: str
    clock: Clock
    control: Control
    limits: RealmLimits
    feeds: Feeds
    journal: Journal
    answer: Callable[[Answer], None]
    metadata: Metadata
    enclose: Enclose
    lease: Lease
    scanning: ScanBudget
    ends: LogEnds
    alarms: Counter[str] = field(default_factory=Counter)
    """What an operator has to look at, counted."""
    lobby: Lobby = field(default_factory=Lobby)
    counted: dict[int, Counted] = field(default_factory=dict)
    """By store: the nodes that have a capacity."""


def subscribe_answer(failure: Failure) -> SubscribeAnswer:
    """A failure of the log as the mapping tables know it on the `attached` axis."""
    return _ANSWERS[failure.cause]


def store_bounds(log: Log, node: Node, deadline_s: float) -> tuple[int, int]:
    """First kept EID and end, certain to be of this node's own topic. Blocks; raises LogError.

    A log reads on in a recreated topic as if nothing had happened (Kafka does): only the id tells.
    """
    topic = log.find_topics([node.topic], deadline_s).get(node.topic)
    if topic is None or topic.id != node.topic_id:
        raise LogError(Failure("not-found", f"the topic of node {node.name!r} is gone or was recreated"))
    return log.bounds(node.topic, node.partition, deadline_s)


def bounded(services: Services, node: Node, done: Callable[[int], None]) -> None:
    """Ask where the node's store begins now."""
    log, deadline_s = services.log, services.limits.control_deadline_s

    def look() -> int:
        return store_bounds(log, node, deadline_s)[0]

    def looked(first: int | LogError) -> None:
        if isinstance(first, LogError):
            _LOG.warning("cannot find where node %r begins: %s", node.name, first)
        else:
            done(first)

    services.control.submit(look, looked)
