"""How many messages nodes and durables have: asked of the gateway that owns the realm, or, where none can be asked,
counted from what is stored. The same numbers as its metrics show.

Blocks; raises LogError.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence

from native_backend.clock import SystemClock
from native_backend.journal.lease_records import LeaseRecords
from native_backend.journal.process_liveness import SystemLiveness
from native_backend.log.port import Log, LogError
from native_backend.nodes.commands import Command, Reply, answers_topic, commands_topic, decode_reply, encode_command
from native_backend.nodes.durable import QUEUE
from native_backend.nodes.metadata import Metadata, read_tail
from native_backend.nodes.node import Node
from native_backend.shard.counts_report import ROWS, Counted, read_report
from native_backend.shard.state_reader import count_stored

_PATIENCE_S = 6.0
_PAUSE_S = 0.02
_DEADLINE_S = 10.0


def numbers(log: Log, prefix: str, metadata: Metadata, nodes: Sequence[Node]) -> Counted:
    """Of these nodes. What is None, or missing, is still being counted, cannot be read, or is too much to read here."""
    try:
        counted = _counted(log, prefix, nodes[0].name if len(nodes) == 1 else "")
    except LogError:
        counted = None  # the owner cannot be asked; what is stored may be readable
    return counted if counted is not None else count_stored(log, prefix, metadata, nodes)


def stored_in(counted: Counted, node: Node) -> int | None:
    """In all stores of a node."""
    counts = [counted.get((part.store, QUEUE if node.kind == "queue" else "")) for part in node.parts]
    known = [count.stored for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def shown(number: int | None) -> str:
    return "unknown" if number is None else str(number)


def _counted(log: Log, prefix: str, node: str) -> Counted | None:
    """By the owner; None: there is none that answers."""
    records = LeaseRecords()
    records.read(log, prefix, _DEADLINE_S)
    if records.free or SystemLiveness().gone(records.process):
        return None
    counted: Counted = {}
    begin, end = 0, 1
    while begin < end:
        reply = _ask(log, prefix, node, begin)
        if reply is None or reply.answer != "done":
            return None
        counted |= read_report(reply.detail)
        begin, end = begin + ROWS, reply.count
    return counted


def _ask(log: Log, prefix: str, node: str, begin: int) -> Reply | None:
    clock = SystemClock()
    answers, until_s = answers_topic(prefix), clock.monotonic_s() + _PATIENCE_S
    position = log.control.bounds(answers, 0)[1]
    until_us = clock.epoch_us() + int(_PATIENCE_S * 1e6)
    command = Command(uuid.uuid4().hex, "count", node, 0, "", until_us, begin, ROWS)
    log.control.put(commands_topic(prefix), command.id.encode(), encode_command(command, clock.epoch_us()))
    while clock.monotonic_s() < until_s:
        for records in read_tail(log, answers, position):
            position = records.next
            for value in records.values:
                reply = None if value is None else decode_reply(value)
                if reply is not None and reply.id == command.id:
                    return reply
        time.sleep(_PAUSE_S)
    return None
