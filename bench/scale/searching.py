"""One match behind very many events of a queue: how long a link with a selector looks for it, and what it costs a link
of another queue meanwhile.

`turn_*_ms` are turns of the realm in which the searching link was asked, `beside_*_ms` from the publishing of an event
to the other link's having it.
"""

from __future__ import annotations

import time
from typing import Any

from bench.scale.worlds import opened, percentile
from native_backend.events.selection import Selection
from native_backend.nodes.node import Node
from tests.kit.realm.realm_process import Consumer, RealmProcess
from tests.kit.realm.worlds import World
from tests.kit.wire import frames
from transformers.codec import AmqpMap, Described, Int, encode
from transformers.selector.selector import selector

AT_ONCE = 10_000


def searching(world: World, backlog: int) -> dict[str, Any]:
    realm = opened(world)
    node, other = realm.create("orders"), realm.create("bills")
    fill(realm, node, backlog)
    text = f"colour = 'red' AND number = {backlog - 1}"
    rare = realm.consumer(node, selection=Selection(text, selector(text).select))
    beside = realm.consumer(other)
    began = time.monotonic()
    turns_ms, beside_ms = search(realm, rare, beside, other)
    seconds = time.monotonic() - began
    ranges = len(realm.state(node).returned)
    realm.kill()
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


def fill(realm: RealmProcess, node: Node, count: int) -> None:
    for first in range(0, count, AT_ONCE):
        numbers = range(first, min(first + AT_ONCE, count))
        realm.publish(node, [message(number) for number in numbers])


def message(number: int) -> bytes:
    return encode(Described(0x74, AmqpMap([("colour", "red"), ("number", Int(number))]))) + frames.message(b"x" * 100)


def search(realm: RealmProcess, rare: Consumer, beside: Consumer, other: Node) -> tuple[list[float], list[float]]:
    """Until it is found."""
    turns_ms, beside_ms = [], []
    sent_s = 0.0
    while not rare.seqs:
        began = time.monotonic()
        if not sent_s:
            sent_s = began
            realm.realm.publish(other, [b"1;none;r;1"], [frames.message()], None)
        realm.turn()
        realm.answers.clear()
        rare.take()
        turns_ms.append(1000 * (time.monotonic() - began))
        if beside.take():
            beside_ms.append(1000 * (time.monotonic() - sent_s))
            sent_s = 0.0
    return turns_ms, beside_ms
