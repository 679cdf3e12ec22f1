"""Many durables of one channel, each settling its events one by one: how long a settlement takes to be in the journal.

`paced`: every durable settles so many a second, as applications do; `closed`: the next as soon as the last is answered.
Latency is from `settle` to its answer.
"""

from __future__ import annotations

import time
from collections import deque
from typing import Any

from bench.scale.worlds import opened, percentile
from native_backend.journal.settlement import SettlementRequest
from native_backend.nodes.answers import Settled
from native_backend.nodes.node import Node
from native_backend.subscriptions.subscription import Subscribe, Subscribed, Subscription
from tests.kit.realm.realm_process import RealmProcess
from tests.kit.realm.worlds import World

EVENTS = 2_000
WARM_S = 60.0  # until then the broker's compiler has half a core to itself, and a transaction takes three times as long
RATE = 10.0  # settlements a second and durable, paced


def settling(world: World, durables: int, seconds: float) -> dict[str, Any]:
    realm = opened(world)
    node = realm.create("news", "channel")
    began = time.monotonic()
    subscriptions = subscribed(realm, node, durables)
    opening_s = time.monotonic() - began
    for _ in range(EVENTS // 500):
        realm.publish(node, [b"x" * 100] * 500)
    paced = Pace(realm, subscriptions, durables * RATE)
    closed = Pace(realm, subscriptions, None)
    for case in (paced, closed):
        case.run(WARM_S if case is paced else 1.0)
        case.latencies.clear()
        case.run(seconds)
    result: dict[str, Any] = {"durables": durables, "opening_s": round(opening_s, 2)}
    result |= {"paced": paced.report(seconds), "closed": closed.report(seconds)}
    began = time.monotonic()
    realm.close()
    return {**result, "closing_s": round(time.monotonic() - began, 2)}


def subscribed(realm: RealmProcess, node: Node, durables: int) -> list[Subscription]:
    for at in range(durables):
        realm.realm.subscribe(Subscribe(node, "durable", f"d{at}", at), at)
    subscriptions: dict[int, Subscription] = {}
    while len(subscriptions) < durables:
        for answer in realm.realm.poll():
            if isinstance(answer, Subscribed):
                assert answer.subscription is not None, answer
                subscriptions[answer.owner] = answer.subscription
        realm.world.pass_time()
    return [subscriptions[at] for at in range(durables)]


class Pace:
    """Drives the subscriptions, one event of each at a time."""

    def __init__(self, realm: RealmProcess, subscriptions: list[Subscription], rate: float | None) -> None:
        self._realm = realm
        self._subscriptions = subscriptions
        self._rate = rate
        self._ready = deque(range(len(subscriptions)))
        self._begun = [0.0] * len(subscriptions)
        self._busy = 0
        self._seq = 0
        self.latencies: list[float] = []
        self.cpu_s = 0.0

    def run(self, seconds: float) -> None:
        """And then until nothing is under way."""
        cpu_s = time.process_time()
        began = now = time.monotonic()
        started = 0
        while now < began + seconds or self._busy:
            if now < began + seconds:
                count = len(self._ready)
                if self._rate is not None:
                    count = min(count, int((now - began) * self._rate) - started)
                started += self._settle(count)
            self._answers()
            time.sleep(0.0005)
            now = time.monotonic()
        self.cpu_s = time.process_time() - cpu_s

    def _settle(self, count: int) -> int:
        """At most so many durables, one event each; those that waited longest first."""
        taken = 0
        for _ in range(count):
            at = self._ready.popleft()
            delivered = self._subscriptions[at].take(1, 1 << 20)
            if delivered is None:
                self._ready.append(at)
                continue
            taken += 1
            self._seq += 1
            self._begun[at] = time.monotonic()
            self._subscriptions[at].settle(SettlementRequest("acknowledge"), delivered.eids, [self._seq], at)
        self._busy += taken
        return taken

    def _answers(self) -> None:
        for answer in self._realm.realm.poll():
            if isinstance(answer, Settled):
                assert answer.answer == "done", answer
                self.latencies.append(time.monotonic() - self._begun[answer.owner])
                self._ready.append(answer.owner)
                self._busy -= 1

    def report(self, seconds: float) -> dict[str, Any]:
        ms = {f"p{name}_ms": round(1e3 * percentile(self.latencies, part), 1) for name, part in PARTS.items()}
        rate = len(self.latencies) / seconds
        return {"settled_per_s": round(rate), **ms, "cpu_us": round(1e6 * self.cpu_s / len(self.latencies), 1)}


PARTS = {"50": 0.5, "99": 0.99, "100": 1.0}
