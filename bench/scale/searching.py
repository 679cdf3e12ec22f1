"""One match behind very many events of a queue: how long a link with a selector looks for it, and what it costs a link
of another queue meanwhile.

`turn_*_ms` are turns of the realm in which the searching link was asked, `beside_*_ms` from the publishing of an event
to the other link's having it. May import: `bench`, `native_backend`, `tests`, `transformers`.
"""

from __future__ import annotations

import time
from typing import Any

from bench.scale.ground import opened, percentile
from native_backend.nodes import Node
from native_backend.selection import Selection
from tests.native_backend.gateway import Consumer, Gateway
from tests.native_backend.logs.worlds import World
from tests.wire import frames
from transformers.amqp_types import AmqpMap, Described, Int, encode
from transformers.selector import selector

AT_ONCE = 10_000


def searching(world: World, backlog: int) -> dict[str, Any]:
    gateway = opened(world)
    node, other = gateway.create("orders"), gateway.create("bills")
    fill(gateway, node, backlog)
    text = f"colour = 'red' AND number = {backlog - 1}"
    rare = gateway.consumer(node, selection=Selection(text, selector(text).select))
    beside = gateway.consumer(other)
    began = time.monotonic()
    turns_ms, beside_ms = search(gateway, rare, beside, other)
    seconds = time.monotonic() - began
    ranges = len(gateway.state(node).returned)
    gateway.kill()
    return {
        "backlog": backlog,
        "seconds": round(seconds, 2),
        "events_per_s": round(backlog / seconds),
        "turn_p50_ms": round(percentile(turns_ms, 0.5), 2),
        "turn_p99_ms": round(percentile(turns_ms, 0.99), 2),
        "beside_p50_ms": round(percentile(beside_ms, 0.5), 2),
        "beside_p99_ms": round(percentile(beside_ms, 0.99), 2),
        "passed_ranges": ranges,
    }


def fill(gateway: Gateway, node: Node, count: int) -> None:
    for first in range(0, count, AT_ONCE):
        numbers = range(first, min(first + AT_ONCE, count))
        gateway.publish(node, [message(number) for number in numbers])


def message(number: int) -> bytes:
    return encode(Described(0x74, AmqpMap([("colour", "red"), ("number", Int(number))]))) + frames.message(b"x" * 100)


def search(gateway: Gateway, rare: Consumer, beside: Consumer, other: Node) -> tuple[list[float], list[float]]:
    """Until it is found."""
    turns_ms, beside_ms = [], []
    sent_s = 0.0
    while not rare.seqs:
        began = time.monotonic()
        if not sent_s:
            sent_s = began
            gateway.realm.publish(other, [b"1;none;r;1"], [frames.message()], None)
        gateway.turn()
        gateway.answers.clear()
        rare.take()
        turns_ms.append(1000 * (time.monotonic() - began))
        if beside.take():
            beside_ms.append(1000 * (time.monotonic() - sent_s))
            sent_s = 0.0
    return turns_ms, beside_ms
