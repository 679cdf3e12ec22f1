"""The contract of the realm, continued: durables that lapse, and those that are unsubscribed."""

from __future__ import annotations

from native_backend.access import ANONYMOUS
from native_backend.answers import Commanded, DurablesFound, Subscribed
from native_backend.metadata_writer import realm_metadata
from native_backend.nodes import Node
from native_backend.subscription import Subscribe
from native_backend.terms import VOLATILE, Expiry, Terms
from tests.native_backend.gateway import Consumer, Gateway
from tests.native_backend.realm_world import Start, bodies, gateway, start, world

__all__ = ["gateway", "start", "world"]  # fixtures


def leave(consumer: Consumer) -> None:
    """As when link, session and connection go at once."""
    consumer.subscription.close()
    consumer.subscription.release()


def durables(gateway: Gateway) -> set[str]:
    return {name for _, name in realm_metadata(gateway.log, gateway.prefix).durables}


def lasting(timeout_s: int = 3600, expiry: Expiry = "link-detach") -> Terms:
    return Terms(expiry=expiry, timeout_s=timeout_s)


def unsubscribe(gateway: Gateway, name: str) -> str:
    owner, by = object(), object()
    gateway.realm.find_durables(name, ANONYMOUS, owner)
    found = gateway.answer(DurablesFound, lambda answer: answer.owner is owner)
    if found.answer != "ready":
        return f"find: {found.answer}"
    for durable in found.durables:
        gateway.realm.unsubscribe(durable, by)
    return gateway.answer(Commanded, lambda answer: answer.owner is by).answer


def channel(gateway: Gateway) -> Node:
    return gateway.create("news", "channel")


def test_a_volatile_durable_ends_with_its_last_link(gateway: Gateway) -> None:
    node = channel(gateway)
    one, other = (gateway.consumer(node, "durable", ":s|volatile", terms=VOLATILE) for _ in range(2))
    eids = gateway.publish(node, bodies(10))
    assert one.receive(5) == eids[:5]
    leave(one)
    assert sorted(other.receive(10)) == eids
    assert durables(gateway) == {":s|volatile"}
    leave(other)
    gateway.until(lambda: not durables(gateway), "its end")
    later = gateway.consumer(node, "durable", ":s|volatile", terms=VOLATILE)
    assert later.drain() == []


def test_who_comes_while_it_ends_waits_and_begins_anew(gateway: Gateway) -> None:
    node = channel(gateway)
    one = gateway.consumer(node, "durable", "v", terms=VOLATILE)
    eids = gateway.publish(node, bodies(3))
    assert one.receive(1) == eids[:1]
    gateway.until(lambda: gateway.log.bounds(node.topic, 0)[1] > eids[-1], "all visible")
    leave(one)
    gateway.realm.poll()  # it is ending now
    asked = object(), object()
    for owner in asked:
        gateway.ask(node, "durable", "v", owner, VOLATILE)
    begun = [gateway.subscribed_to(owner) for owner in asked]
    assert [each.answer for each in begun] == ["ready", "ready"]
    assert begun[0].subscription is not None
    new = Consumer(gateway, begun[0].subscription)
    assert new.drain() == []
    fresh = gateway.publish(node, bodies(2))
    assert new.receive(2) == fresh
    new.acknowledge(fresh)
    assert gateway.state(node, "v").low == fresh[-1] + 1


def test_a_durable_lapses_when_its_time_out_has_passed_and_not_before(gateway: Gateway) -> None:
    node = channel(gateway)
    leave(gateway.consumer(node, "durable", "long", terms=lasting(3600)))
    leave(gateway.consumer(node, "durable", "for ever"))
    short = gateway.consumer(node, "durable", "short", terms=lasting(1))
    since_s = gateway.clock.monotonic_s()
    leave(short)
    gateway.until(lambda: "short" not in durables(gateway), "its end")
    assert gateway.clock.monotonic_s() - since_s >= 1
    assert durables(gateway) == {"long", "for ever"}


def test_who_comes_in_time_stops_it_and_the_scope_must_end_for_every_link(gateway: Gateway) -> None:
    """L-2: the time-out begins anew at its full value."""
    node = channel(gateway)
    terms = Terms(shared=True, expiry="session-end", timeout_s=1)
    first, second = (gateway.consumer(node, "durable", "d", terms=terms) for _ in range(2))
    leave(first)
    second.subscription.close()  # its session goes on
    since_s = gateway.clock.monotonic_s()
    gateway.until(lambda: gateway.clock.monotonic_s() > since_s + 1.5, "longer than the time-out")
    assert durables(gateway) == {"d"}
    second.subscription.release()
    gateway.turn()
    third = gateway.consumer(node, "durable", "d", terms=terms)
    since_s = gateway.clock.monotonic_s()
    gateway.until(lambda: gateway.clock.monotonic_s() > since_s + 1.5, "longer than the time-out")
    assert durables(gateway) == {"d"}
    leave(third)
    gateway.until(lambda: not durables(gateway), "its end")


def test_of_a_killed_process_every_scope_has_ended(start: Start) -> None:
    gateway = start()
    node = channel(gateway)
    for name, terms in (
        ("v", VOLATILE),
        ("c", lasting(0, "connection-close")),
        ("long", lasting()),
        ("never", Terms()),
    ):
        gateway.consumer(node, "durable", name, terms=terms)
    gateway.kill()
    later = start()
    later.until(lambda: durables(later) == {"long", "never"}, "the end of two")
    assert later.subscribed(node, "durable", "long", terms=lasting()).answer == "ready"


def test_unsubscribing_deletes_it_through_the_journal(start: Start) -> None:
    gateway = start()
    node = channel(gateway)
    consumer = gateway.consumer(node, "durable", "d")
    eids = gateway.publish(node, bodies(5))
    consumer.receive(5)
    consumer.acknowledge(eids[:2])
    assert unsubscribe(gateway, "d") == "find: in-use"
    leave(consumer)
    assert unsubscribe(gateway, "d") == "done"
    assert unsubscribe(gateway, "d") == "find: not-found"
    assert durables(gateway) == set()
    ends = [entry for record in gateway.journal() for entry in record["entries"] if entry["operation"] == "delete"]
    assert [(entry["durable"], entry["cause"]) for entry in ends] == [("d", "unsubscribed")]
    gateway.kill()
    again = start().consumer(node, "durable", "d")
    assert again.drain() == []


def test_a_name_finds_its_durables_on_all_nodes_and_no_queue(gateway: Gateway) -> None:
    news, more = channel(gateway), gateway.create("more", "channel")
    queue = gateway.create("orders")
    gateway.consumer(queue).subscription.close()
    for node in (news, more):
        leave(gateway.consumer(node, "durable", "d"))
    assert unsubscribe(gateway, "queue") == "find: not-found"
    assert unsubscribe(gateway, "d") == "done"
    gateway.until(lambda: durables(gateway) == {"queue"}, "the end of both")


def test_what_is_unsubscribed_cannot_be_commanded_any_more(gateway: Gateway) -> None:
    node = channel(gateway)
    leave(gateway.consumer(node, "durable", "d"))
    assert unsubscribe(gateway, "d") == "done"
    assert gateway.command("seek", node, "d", 0).answer == "not-found"


def test_a_durable_that_moves_to_another_node_is_given_up_where_it_was(gateway: Gateway) -> None:
    news, more = channel(gateway), gateway.create("more", "channel")

    def moved() -> Subscribed:
        owner = object()
        gateway.realm.subscribe(Subscribe(more, "durable", "d", owner, only_here=True), owner)
        return gateway.subscribed_to(owner)

    held = gateway.consumer(news, "durable", "d")
    other = gateway.consumer(news, "durable", "other")
    assert moved().answer == "in-use"
    leave(held)
    assert moved().answer == "ready"
    gateway.until(lambda: places(gateway) == {("more", "d"), ("news", "other")}, "its end there")
    eids = gateway.publish(news, bodies(1))
    assert other.receive(1) == eids
    assert gateway.subscribed(news, "durable", "d").answer == "ready", "unasked, both may be"
    assert places(gateway) == {("more", "d"), ("news", "other"), ("news", "d")}


def places(gateway: Gateway) -> set[tuple[str, str]]:
    return set(realm_metadata(gateway.log, gateway.prefix).durables)
