"""What every part of one realm shares: the log below, the clock beside, the answers above."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import cast

from mappings.language.causes import ANSWERS, answered
from native_backend.clock import Clock
from native_backend.events.copy_key import Annotate
from native_backend.events.known_ends import KnownEnds
from native_backend.events.log_end import LogEnds
from native_backend.events.selection import ScanBudget
from native_backend.events.store_events import StoreEvents
from native_backend.events.wait_list import WaitLists
from native_backend.events.window import StoreWindows
from native_backend.journal.journal import Journal
from native_backend.journal.lease import Lease
from native_backend.journal.settlement import Settlement
from native_backend.limits import RealmLimits
from native_backend.log.columns import Strings
from native_backend.log.port import Append, Cause, Failure, Log, LogError
from native_backend.log.worker import Worker
from native_backend.nodes.answers import Answer
from native_backend.nodes.metadata import Metadata
from native_backend.nodes.node import Node
from native_backend.nodes.start_position import StartPosition
from native_backend.nodes.words import SubscribeAnswer
from native_backend.state.dead_letter_counts import DeadLetterCounts
from native_backend.state.mistakes import Mistakes
from native_backend.state.occupancy import Counted
from native_backend.state.timers import Timers
from native_backend.state.troubles import Alarms, Troubles

_LOG = logging.getLogger(__name__)
_ANSWERS = cast("Mapping[Cause, SubscribeAnswer]", ANSWERS["attach"])
LASTING = answered("later")  # failures of a read that waiting does not mend
_LOOKS = 3  # at an end that lies below what is known, before it is believed


@dataclass(frozen=True, slots=True)
class RealmContext:
    """One realm's, for its whole life."""

    log: Log
    prefix: str
    run: str
    clock: Clock
    worker: Worker
    projections: Worker
    """Where group offsets are set: no peer waits for them, and their coordinator may be away alone."""
    limits: RealmLimits
    windows: StoreWindows
    journal: Journal
    answer: Callable[[Answer], None]
    metadata: Metadata
    annotate: Annotate
    lease: Lease
    scanning: ScanBudget
    ends: LogEnds
    alarms: Alarms
    """What an operator has to look at, counted."""
    troubles: Troubles
    mistakes: Mistakes
    timers: Timers
    wait_lists: WaitLists = field(default_factory=WaitLists)
    preparing: set[Settlement] = field(default_factory=set)
    """What left its link and is not with the journal yet: its dead letters are read, or its commit is prepared."""
    dead_letters: DeadLetterCounts = field(default_factory=DeadLetterCounts)
    refused_letters: dict[int, float] = field(default_factory=dict)
    """By store: a dead-letter node that takes no letter, and when the next one is tried; monotonic seconds."""
    counted: dict[int, Counted] = field(default_factory=dict)
    """By store: the nodes that have a capacity."""
    events: dict[tuple[str, int], StoreEvents] = field(default_factory=dict)
    """By topic and partition: what is known of the events of each store."""

    @property
    def gives(self) -> bool:
        """Whether events may be given: the realm is this process's, and the journal keeps up with what is settled."""
        return self.lease.held and self.journal.unstored < self.limits.journal_waiting

    @property
    def known(self) -> KnownEnds:
        """Where the stores end."""
        return self.journal.known


def subscribe_answer(failure: Failure) -> SubscribeAnswer:
    """A failure of the log as the mapping tables know it on the `attached` axis."""
    return _ANSWERS[failure.cause]


def store_bounds(log: Log, node: Node, deadline_s: float) -> tuple[int, int]:
    """First kept EID and end, certain to be of this node's own topic. Blocks; raises LogError.

    A log reads on in a recreated topic as if nothing had happened (Kafka does): only the id tells.
    """
    topic = log.control.find_topics([node.topic], deadline_s).get(node.topic)
    if topic is not None and topic.id != node.topic_id:
        raise LogError(Failure("not-found", f"the topic of node {node.name!r} was deleted and made again"))
    bounds = log.control.bounds(node.topic, node.partition, deadline_s)  # `not-found`: the topic is gone
    if topic is None:  # it cannot be used now, so it is not known to be the same
        raise LogError(Failure("unavailable", f"the topic of node {node.name!r} cannot be used now"))
    return bounds


def shown_bounds(context: RealmContext, node: Node) -> tuple[int, int]:
    """The same, once the log shows all that this process knows to be stored: it may answer that an event is stored, and
    show it a little later. Where it does not, after a while, what it shows is the end."""
    bounds = store_bounds(context.log, node, context.limits.control_deadline_s)
    if bounds[1] >= context.known.of((node.topic, node.partition)):
        return bounds
    return context.ends.bounds(node)


def start_bounds(context: RealmContext, node: Node, start: StartPosition) -> tuple[int, int]:
    """The same, for a subscription that is to begin there: what is stored, as far as this process knows, comes before
    its end. Only to find a time the log has to show it. Blocks; raises LogError."""
    if start.kind == "time":
        return shown_bounds(context, node)
    first, end = store_bounds(context.log, node, context.limits.control_deadline_s)
    return first, max(end, context.known.of((node.topic, node.partition)))


def certain_bounds(context: RealmContext, node: Node, position: int) -> tuple[int, int]:
    """First kept EID and end of a store of which something is known up to `position`. Blocks; raises LogError.

    An end below that is believed when it is still below a moment later: a broker that is no leader any more, and does
    not know it yet, says less than there is.
    """
    deadline_s = context.limits.control_deadline_s
    first, end = store_bounds(context.log, node, deadline_s)
    lowest = end
    for _ in range(_LOOKS):
        if end >= position:
            return first, end
        context.worker.pause(context.limits.retry_interval_s)
        first, end = store_bounds(context.log, node, deadline_s)
        lowest = min(lowest, end)
    return first, lowest if end < position else end


def ask_first_eid(context: RealmContext, node: Node, position: int, done: Callable[[int], None]) -> None:
    """A reader at `position` is out of range: ask where the node's store begins now, and whether it has become shorter.
    `done` with where it begins."""

    place = node.topic, node.partition
    cuts = context.known.cuts(place)

    def looked(bounds: tuple[int, int] | LogError) -> None:
        if isinstance(bounds, LogError):
            _LOG.warning("cannot find where node %r begins: %s", node.name, bounds)
            return
        if bounds[1] < position:
            context.known.looked(place, bounds[1], position, cuts)
        done(bounds[0])

    context.worker.submit(lambda: certain_bounds(context, node, position), looked)


def append(context: RealmContext, node: Node, keys: Strings, values: Strings, owner: object) -> None:
    """Events for the node's store, to the log."""
    known = context.known.of((node.topic, node.partition))
    began_s = context.clock.monotonic_s()
    context.log.append(Append(node.topic, node.partition, keys, values, owner, known=known, began_s=began_s))
