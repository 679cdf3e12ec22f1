"""What the owner of a realm answers when a command asks how many messages there are: rows, in the reply's `detail`.

A row is [store, durable, stored, available, unsettled, delayed]; of a channel itself, which has no durable of its own,
[store, "", stored]. Null: it is being counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import astuple

import orjson

from native_backend.clock import Clock
from native_backend.events.message_counts import MessageCounts
from native_backend.nodes.commands import Command
from native_backend.nodes.node import Node
from native_backend.nodes.words import CommandAnswer
from native_backend.shard.depths import Depths

ROWS = 2000  # of one reply: some 200 kB
_STEP = 10  # rows without a pause: some 500 us
Counted = dict[tuple[int, str], MessageCounts | None]
"""By store and durable; a channel itself under the empty name, with all its messages as `stored` and `available`."""


def report(
    depths: Depths, command: Command, clock: Clock, done: Callable[[CommandAnswer, int, str], None]
) -> Iterator[None]:
    """In steps."""
    if clock.epoch_us() > command.until_us:
        done("unavailable", 0, "the command came too late")
        return
    durables, channels = depths.durables(), depths.channels()
    if command.node:
        durables = [pair for pair in durables if pair[0].name == command.node]
        channels = [node for node in channels if node.name == command.node]
    begin, end = command.eid, command.eid + command.count
    rows: list[list[object]] = []
    for at, (node, durable) in enumerate(durables[begin:end], 1):
        counts = None
        for step in depths.steps(node, durable):
            if step is None:
                yield None
            else:
                counts = step.counts
        rows.append([node.store, durable.name, *(astuple(counts) if counts is not None else [None] * 4)])
        if at % _STEP == 0:
            yield None
    others = channels[max(0, begin - len(durables)) : max(0, end - len(durables))]
    rows += [_of_channel(depths, node) for node in others]
    done("done", len(durables) + len(channels), orjson.dumps(rows).decode())


def _of_channel(depths: Depths, node: Node) -> list[object]:
    stored = None
    for stored in depths.stored(node):  # noqa: B007  # the last one
        pass
    return [node.store, "", stored]


def read_report(detail: str) -> Counted:
    counted: Counted = {}
    for store, durable, stored, *others in orjson.loads(detail):
        if stored is None:
            counted[store, durable] = None
        else:
            counted[store, durable] = MessageCounts(stored, *(others or (stored, 0, 0)))
    return counted
