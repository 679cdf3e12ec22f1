"""The contract of the realm: what consumers settle waits for the journal; where too much waits, nothing more is given.
A peer that settles and takes more could have the whole of a queue in memory, while the log can be read and not
written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from native_backend.events.selection import Selection
from native_backend.limits import RealmLimits
from native_backend.log.port import Write
from native_backend.subscriptions.subscription import Mode
from tests.kit.realm.fixtures import SPREAD, Start, bodies, start, world
from tests.kit.realm.realm_process import Consumer, RealmProcess, by_store

__all__ = ["start", "world"]  # fixtures
pytestmark = SPREAD
WAITING = 30


class HeldTransactions:
    """In place of a log's: none goes out until `release`."""

    def __init__(self, realm: RealmProcess, monkeypatch: pytest.MonkeyPatch) -> None:
        self._kept: list[tuple[Any, ...]] = []
        self._transact: Callable[..., None] = realm.log.transact
        self._is_held = True
        monkeypatch.setattr(realm.log, "transact", self.transact)

    def transact(self, shard: str, writes: Sequence[Write], owner: object) -> None:
        if self._is_held:
            self._kept.append((shard, writes, owner))
        else:
            self._transact(shard, writes, owner)

    def release(self) -> None:
        self._is_held = False
        for parts in self._kept:
            self._transact(*parts)


def lingers(realm: RealmProcess, consumer: Consumer) -> list[int]:
    """What it is given in thirty turns."""
    eids: list[int] = []
    for _ in range(30):
        realm.turn()
        eids += consumer.take(100)
    return eids


@pytest.mark.parametrize("mode", ["queue", "durable", "selecting"])
def test_where_too_much_waits_for_the_journal_nothing_is_given(
    start: Start, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    realm = start(RealmLimits(journal_waiting=WAITING))
    node = realm.create("orders", "channel" if mode == "durable" else "queue")
    selection = Selection("all", lambda values: [True] * len(values)) if mode == "selecting" else None
    kind: Mode = "durable" if mode == "durable" else "queue"
    consumer = realm.consumer(node, kind, "all" if mode == "durable" else None, selection=selection)
    eids = realm.publish(node, bodies(200))
    held = HeldTransactions(realm, monkeypatch)
    given: list[int] = []
    for count in (10, 20, 20):  # the first ones are under way in a transaction, and what follows waits for it
        some = consumer.receive(count)
        given += some
        for of_store in by_store(some).values():
            consumer.start("acknowledge", of_store)
        realm.turn()
    assert lingers(realm, consumer) == []
    held.release()
    while len(given) < 200:
        some = consumer.receive(50)
        given += some
        consumer.acknowledge(some)
    assert by_store(sorted(given)) == by_store(eids)
