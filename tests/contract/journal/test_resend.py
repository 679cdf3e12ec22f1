"""The contract of the realm, continued: commands about chosen events. Each event is in exactly one place, whatever is
killed; what a command does not mean, or cannot send, stays as it was."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import orjson
import pytest

from native_backend.limits import RealmLimits
from native_backend.log import event_key
from native_backend.nodes import admin
from native_backend.nodes.node import Node
from native_backend.nodes.properties import Properties
from native_backend.operations.route import origin_of
from tests.contract.actions import FULL, create, entries, stored
from tests.kit.realm.fixtures import SPREAD, Start, bodies, fold, realm, start, world
from tests.kit.realm.realm_process import RealmProcess

__all__ = ["realm", "start", "world"]  # fixtures
pytestmark = SPREAD

PIECES = RealmLimits(letter_events=3)


def gave_up(realm: RealmProcess, node: Node, values: list[bytes]) -> None:
    """Published and rejected."""
    realm.publish(node, values)
    consumer = realm.consumer(node)
    eids = consumer.receive(len(values))
    assert consumer.settle("dead-letter", eids, reason="rejected") == "done"
    consumer.subscription.close()


def commanded(realm: RealmProcess, what: Any, node: Node, **more: Any) -> tuple[int, dict[tuple[int, str], int]]:
    """In every store of the node: how many events, and of a resend what became of them."""
    count, rows = 0, dict[tuple[int, str], int]()
    for part in node.parts:
        done = realm.command(what, part, **more)
        assert done.answer == "done", done
        count += done.count
        for store, why, number in orjson.loads(done.detail) if what == "resend" else ():
            rows[store, why] = rows.get((store, why), 0) + number
    return count, rows


def held(realm: RealmProcess, node: Node, count: int) -> list[bytes]:
    """The bodies that consumers of it get, given back uncounted."""
    consumer = realm.consumer(node)
    eids = consumer.receive(count) + consumer.drain()
    values = sorted(fold(consumer, eids))
    consumer.subscription.close()
    return values


def test_each_dead_letter_goes_back_to_where_it_was(start: Start) -> None:
    realm = start(PIECES)
    dead = realm.create("dead")
    orders, bills = (create(realm, name, Properties(dead_letter="dead")) for name in ("orders", "bills"))
    first, second = bodies(20)[:11], bodies(20)[11:]
    gave_up(realm, orders, first)
    gave_up(realm, bills, second)
    stored(realm, dead, 20)
    count, rows = commanded(realm, "resend", dead)
    assert count == 20
    assert sum(rows.values()) == 20 and {why for _, why in rows} == {"sent"}
    assert {store for store, _ in rows} <= {part.store for node in (orders, bills) for part in node.parts}
    assert (held(realm, orders, 11), held(realm, bills, 9), held(realm, dead, 0)) == (first, second, [])
    realm.kill()
    later = start()
    assert (held(later, orders, 11), held(later, bills, 9), held(later, dead, 0)) == (first, second, [])
    moves = entries(later, "move")
    assert {entry["to"] for entry in moves} == {store for store, _ in rows}
    assert {str(entry["cause"]).split()[0] for entry in moves} == {"command"}


def test_it_comes_back_to_the_store_that_it_was_in(start: Start) -> None:
    """Also where the dead-letter node has fewer."""
    realm = start()
    admin.create_node(realm.log, realm.prefix, "dead", "queue", realm.clock)
    dead = realm.find("dead")
    assert dead is not None
    orders = create(realm, "orders", Properties(dead_letter="dead"))
    gave_up(realm, orders, bodies(12))
    stored(realm, dead, 12)
    before = bodies_of(realm, orders, 12)
    assert commanded(realm, "resend", dead)[0] == 12
    assert bodies_of(realm, orders, 24) == {store: sorted(2 * values) for store, values in before.items()}


def bodies_of(realm: RealmProcess, node: Node, count: int) -> dict[int, list[bytes]]:
    """What each of its stores has, once there are so many in all."""
    stored(realm, node, count)
    contents = {}
    for part in node.parts:
        end = realm.log.control.bounds(part.topic, part.partition)[1]
        records = realm.log.control.read_range(part.topic, part.partition, 0, end) if end else None
        contents[part.store] = sorted(value for value in records.values if value is not None) if records else []
    return contents


def test_only_what_is_meant_goes_back(start: Start) -> None:
    realm = start(PIECES)
    dead = realm.create("dead")
    orders = create(realm, "orders", Properties(dead_letter="dead"))
    values = bodies(30)
    gave_up(realm, orders, values)
    stored(realm, dead, 30)
    meant = [value for value in values if b"1" in value]
    assert commanded(realm, "resend", dead, where="1")[0] == len(meant)
    rest = sorted(set(values) - set(meant))
    assert held(realm, orders, len(meant)) == meant
    assert held(realm, dead, len(rest)) == rest
    refused = realm.command("resend", dead, where="!")
    assert (refused.answer, refused.count) == ("unexpected", 0)
    realm.kill()
    later = start()
    assert (held(later, orders, len(meant)), held(later, dead, len(rest))) == (meant, rest)


def test_what_cannot_go_back_stays_and_is_counted(start: Start) -> None:
    realm = start(PIECES)
    dead, side = realm.create("dead"), realm.create("side")
    gone = create(realm, "gone", Properties(dead_letter="dead"))
    news = realm.create("news", "channel", Properties(dead_letter="dead"))
    full = create(realm, "full", replace(FULL, dead_letter="dead", capacity_events=4))
    orders = create(realm, "orders", Properties(dead_letter="dead"))
    a, b, c, d = (bodies(40)[at : at + 6] for at in (0, 6, 12, 18))
    gave_up(realm, gone, a)
    gave_up(realm, orders, b)
    subscriber = realm.consumer(news, "durable", "d")
    realm.publish(news, c)
    assert subscriber.settle("dead-letter", subscriber.receive(6), reason="rejected") == "done"
    for value in d[:4]:
        gave_up(realm, full, [value])
    stored(realm, dead, 22)
    realm.publish(full, bodies(3))
    realm.publish(dead, [b"published here"])
    realm.publish(side, [b"moved here"])
    stored(realm, side, 1)
    assert commanded(realm, "move", side, to="dead")[0] == 1
    admin.delete_node(realm.log, realm.prefix, "gone", False)
    realm.find("gone")
    stored(realm, dead, 24)
    count, rows = commanded(realm, "resend", dead)
    by_why: dict[str, int] = {}
    for (_, why), number in rows.items():
        by_why[why] = by_why.get(why, 0) + number
    room = by_why["sent"] - 6
    assert by_why == {"sent": count, "gone": 6, "channel": 6, "moved": 1, "unknown": 1, "full": 4 - room}
    assert 0 < room < 4 or realm.partitions > 1
    assert held(realm, orders, 6) == b
    left = held(realm, dead, 24 - count)
    assert len(left) == 24 - count
    assert set(left) >= {*a, *c, b"published here", b"moved here"}
    assert len(held(realm, full, 3 + room)) == 3 + room


# -- the same path, without a copy and to one node


def test_a_purge_of_chosen_events_leaves_the_others_as_they_were(start: Start) -> None:
    realm = start(PIECES)
    patient = Properties(redelivery_delay_ms=3_600_000)
    orders = create(realm, "orders", patient)
    values = bodies(30)
    realm.publish(orders, values)
    consumer = realm.consumer(orders)
    eids = consumer.receive(9)
    delayed = fold(consumer, eids)
    assert consumer.settle("return", eids, failed=True) == "done"
    consumer.subscription.close()
    stored(realm, orders, 30)
    meant = {value for value in values if b"2" in value}
    assert commanded(realm, "purge", orders, where="2")[0] == len(meant)
    rest = sorted(set(values) - meant - set(delayed))
    assert held(realm, orders, len(rest)) == rest, "what was delayed is not given before its time"
    waiting = sum(last - first + 1 for state in realm.states(orders) for _, first, last in state.delayed)
    assert waiting == len(set(delayed) - meant)
    realm.kill()
    later = start()
    assert held(later, orders, len(rest)) == rest
    assert {str(entry["cause"]).split()[0] for entry in entries(later, "purge")} == {"command"}


def test_so_many_chosen_events_are_moved(start: Start) -> None:
    realm = start(PIECES)
    orders, side = realm.create("orders"), realm.create("side")
    values = bodies(30)
    realm.publish(orders, values)
    part = orders.part(orders.partitions - 1)
    here = bodies_of(realm, orders, 30)[part.store]
    meant = [value for value in here if b"1" in value]
    moved = realm.command("move", part, where="1", count=2, to="side")
    assert (moved.answer, moved.count) == ("done", 2)
    assert held(realm, side, 2) == meant[:2]
    assert held(realm, orders, 28) == sorted(set(values) - set(meant[:2]))


@pytest.mark.parametrize("cause", ["rejected", "expired"])
def test_where_an_event_comes_from_stands_in_its_key(realm: RealmProcess, cause: str) -> None:
    queue, news = realm.create("orders"), realm.create("news", "channel")
    stores = {part.store: part for node in (queue, news) for part in node.parts}
    part = queue.part(queue.partitions - 1)
    assert origin_of(stores, event_key.copy_of(part.store, 7, cause, b"key")) == part
    assert origin_of(stores, event_key.copy_of(part.store, 7, "moved", b"key")) == "moved"
    assert origin_of(stores, event_key.copy_of(news.store, 7, cause, b"key")) == "channel"
    assert origin_of(stores, event_key.copy_of(1, 7, cause, b"key")) == "gone"
    assert origin_of(stores, b"key") == "unknown"
