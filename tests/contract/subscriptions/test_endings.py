"""The contract of the realm, continued: durables that lapse, and those that are unsubscribed; on nodes of one store and
of several."""

from __future__ import annotations

import pytest

from native_backend.log.port import Failure, LogError
from native_backend.nodes.durable import Durable
from native_backend.nodes.durable_terms import VOLATILE, DurableTerms, Expiry
from native_backend.nodes.metadata_writer import realm_metadata
from native_backend.nodes.node import Node
from native_backend.subscriptions.subscription import Subscribe, Subscribed
from tests.contract.actions import unsubscribe
from tests.kit.realm.fixtures import SPREAD, Start, bodies, realm, start, world
from tests.kit.realm.inside import shard_of
from tests.kit.realm.realm_process import Consumer, RealmProcess

__all__ = ["realm", "start", "world"]  # fixtures
pytestmark = SPREAD


def leave(consumer: Consumer) -> None:
    """As when link, session and connection go at once."""
    consumer.subscription.close()
    consumer.subscription.release()


def durables(realm: RealmProcess) -> set[str]:
    return {name for _, name in realm_metadata(realm.log, realm.prefix).durables}


def lasting(timeout_s: int = 3600, expiry: Expiry = "link-detach") -> DurableTerms:
    return DurableTerms(expiry=expiry, timeout_s=timeout_s)


def channel(realm: RealmProcess) -> Node:
    return realm.create("news", "channel")


def test_a_volatile_durable_ends_with_its_last_link(realm: RealmProcess) -> None:
    node = channel(realm)
    consumer, other = (realm.consumer(node, "durable", ":s|volatile", terms=VOLATILE) for _ in range(2))
    eids = realm.publish(node, bodies(10))
    assert set(consumer.receive(5)) < set(eids)
    leave(consumer)
    assert sorted(other.receive(10)) == sorted(eids)
    assert durables(realm) == {":s|volatile"}
    leave(other)
    realm.until(lambda: not durables(realm), "its end")
    later = realm.consumer(node, "durable", ":s|volatile", terms=VOLATILE)
    assert later.drain() == []


def test_who_comes_while_it_ends_waits_and_begins_anew(realm: RealmProcess) -> None:
    node = channel(realm)
    consumer = realm.consumer(node, "durable", "v", terms=VOLATILE)
    eids = realm.publish(node, bodies(3))
    assert set(consumer.receive(3)) == set(eids)
    leave(consumer)
    realm.realm.poll()  # it is ending now
    owners = object(), object()
    for owner in owners:
        realm.ask(node, "durable", "v", owner, VOLATILE)
    begun = [realm.subscribed_to(owner) for owner in owners]
    assert [reply.answer for reply in begun] == ["ready", "ready"]
    assert begun[0].subscription is not None
    new = Consumer(realm, begun[0].subscription)
    assert new.drain() == []
    fresh = realm.publish(node, bodies(2))
    assert sorted(new.receive(2)) == sorted(fresh)
    new.acknowledge(fresh)
    assert realm.has_ended(node, fresh, "v")


def test_a_durable_lapses_when_its_time_out_has_passed_and_not_before(realm: RealmProcess) -> None:
    node = channel(realm)
    leave(realm.consumer(node, "durable", "long", terms=lasting(3600)))
    leave(realm.consumer(node, "durable", "for ever"))
    short = realm.consumer(node, "durable", "short", terms=lasting(1))
    since_s = realm.clock.monotonic_s()
    leave(short)
    realm.until(lambda: "short" not in durables(realm), "its end")
    assert realm.clock.monotonic_s() - since_s >= 1
    assert durables(realm) == {"long", "for ever"}


def test_who_comes_in_time_stops_it_and_the_scope_must_end_for_every_link(realm: RealmProcess) -> None:
    """L-2: the time-out begins anew at its full value."""
    node = channel(realm)
    terms = DurableTerms(shared=True, expiry="session-end", timeout_s=1)
    first, second = (realm.consumer(node, "durable", "d", terms=terms) for _ in range(2))
    leave(first)
    second.subscription.close()  # its session goes on
    since_s = realm.clock.monotonic_s()
    realm.until(lambda: realm.clock.monotonic_s() > since_s + 1.5, "longer than the time-out")
    assert durables(realm) == {"d"}
    second.subscription.release()
    realm.turn()
    third = realm.consumer(node, "durable", "d", terms=terms)
    since_s = realm.clock.monotonic_s()
    realm.until(lambda: realm.clock.monotonic_s() > since_s + 1.5, "longer than the time-out")
    assert durables(realm) == {"d"}
    leave(third)
    realm.until(lambda: not durables(realm), "its end")


def test_of_a_killed_process_every_scope_has_ended(start: Start) -> None:
    realm = start()
    node = channel(realm)
    for name, terms in (
        ("v", VOLATILE),
        ("c", lasting(0, "connection-close")),
        ("long", lasting()),
        ("never", DurableTerms()),
    ):
        realm.consumer(node, "durable", name, terms=terms)
    realm.kill()
    later = start()
    later.until(lambda: durables(later) == {"long", "never"}, "the end of two")
    assert later.subscribed(node, "durable", "long", terms=lasting()).answer == "ready"


def test_unsubscribing_deletes_it_through_the_journal(start: Start) -> None:
    realm = start()
    node = channel(realm)
    consumer = realm.consumer(node, "durable", "d")
    eids = realm.publish(node, bodies(5))
    consumer.receive(5)
    consumer.acknowledge(eids[:2])
    assert unsubscribe(realm, "d") == "find: in-use"
    leave(consumer)
    assert unsubscribe(realm, "d") == "done"
    assert unsubscribe(realm, "d") == "find: not-found"
    assert durables(realm) == set()
    ends = [entry for record in realm.journal() for entry in record["entries"] if entry["operation"] == "delete"]
    assert [(entry["durable"], entry["cause"]) for entry in ends] == [("d", "unsubscribed")] * node.partitions
    assert {entry["store"] for entry in ends} == {part.store for part in node.parts}
    realm.kill()
    again = start().consumer(node, "durable", "d")
    assert again.drain() == []


def test_unsubscribing_again_does_what_was_left_of_it(realm: RealmProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    node = channel(realm)
    leave(realm.consumer(node, "durable", "d"))

    def unavailable(_: Durable) -> None:
        raise LogError(Failure("unavailable", "for now"))

    with monkeypatch.context() as broken:
        broken.setattr(shard_of(realm.realm), "erase", unavailable)
        assert unsubscribe(realm, "d") == "unavailable"
        assert durables(realm) == {"d"}
    assert unsubscribe(realm, "d") == "done"
    assert durables(realm) == set()


def test_a_name_finds_its_durables_on_all_nodes_and_no_queue(realm: RealmProcess) -> None:
    news, more = channel(realm), realm.create("more", "channel")
    queue = realm.create("orders")
    realm.consumer(queue).subscription.close()
    for node in (news, more):
        leave(realm.consumer(node, "durable", "d"))
    assert unsubscribe(realm, "queue") == "find: not-found"
    assert unsubscribe(realm, "d") == "done"
    realm.until(lambda: durables(realm) == {"queue"}, "the end of both")


def test_what_is_unsubscribed_cannot_be_commanded_any_more(realm: RealmProcess) -> None:
    node = channel(realm)
    leave(realm.consumer(node, "durable", "d"))
    assert unsubscribe(realm, "d") == "done"
    assert realm.command("seek", node, "d", 0).answer == "not-found"


def test_a_durable_that_moves_to_another_node_is_given_up_where_it_was(realm: RealmProcess) -> None:
    news, more = channel(realm), realm.create("more", "channel")

    def moved() -> Subscribed:
        owner = object()
        realm.realm.subscribe(Subscribe(more, "durable", "d", owner, only_here=True), owner)
        return realm.subscribed_to(owner)

    held = realm.consumer(news, "durable", "d")
    other = realm.consumer(news, "durable", "other")
    assert moved().answer == "in-use"
    leave(held)
    assert moved().answer == "ready"
    realm.until(lambda: places(realm) == {("more", "d"), ("news", "other")}, "its end there")
    eids = realm.publish(news, bodies(1))
    assert other.receive(1) == eids
    assert realm.subscribed(news, "durable", "d").answer == "ready", "unasked, both may be"
    assert places(realm) == {("more", "d"), ("news", "other"), ("news", "d")}


def places(realm: RealmProcess) -> set[tuple[str, str]]:
    return set(realm_metadata(realm.log, realm.prefix).durables)
