"""The contract of the realm, continued: who looks at a queue without taking; on nodes of one store and of several."""

from __future__ import annotations

import pytest

from native_backend.events.selection import Selection
from native_backend.limits import RealmLimits
from native_backend.log.port import Write
from native_backend.nodes.answers import Committed
from native_backend.nodes.properties import Properties
from native_backend.nodes.words import Operation
from native_backend.subscriptions.partitioned import eids_of
from tests.kit.realm.fixtures import SMALL, SPREAD, Start, bodies, realm, start, world
from tests.kit.realm.inside import context_of
from tests.kit.realm.realm_process import Consumer, RealmProcess, by_store
from tests.kit.realm.worlds import RECORD_BYTES_MAX

__all__ = ["realm", "start", "world"]  # fixtures
pytestmark = SPREAD


def seen(browser: Consumer) -> list[int]:
    """Until it has seen what was there when it came."""
    eids: list[int] = []

    def done() -> bool:
        eids.extend(more := browser.take(7))
        return not more and not browser.subscription.looking

    browser.realm.until(done, "the end")
    return eids


@pytest.mark.parametrize("limits", [RealmLimits(), SMALL], ids=["default", "small"])
def test_V_1_it_sees_what_has_not_ended_and_takes_nothing(start: Start, limits: RealmLimits) -> None:
    """Neither what was acknowledged, one by one or from the beginning; but what another has just now."""
    realm = start(limits)
    node = realm.create("orders")
    eids = realm.publish(node, bodies(200))
    consumer = realm.consumer(node)
    had = consumer.receive(100)
    consumer.acknowledge(had[:10])
    consumer.acknowledge(had[20:90:7])
    there = [eid for eid in eids if eid not in had[:10] and eid not in had[20:90:7]]
    browser, other = realm.consumer(node, "browse"), realm.consumer(node, "browse")
    assert by_store(seen(browser)) == by_store(there)
    assert by_store(seen(other)) == by_store(there)
    assert browser.drain() == []
    assert sorted(consumer.receive(100)) == sorted(set(eids) - set(had))
    firsts = {at: eids_of(some)[0] for at, some in by_store(there).items()}
    for at, state in enumerate(realm.states(node)):
        ended = [eid for eid in eids_of(by_store(eids)[at]) if eid < firsts[at]]
        assert max(ended, default=-1) < state.low <= firsts[at]
        assert not state.returned


def test_it_goes_on_with_what_comes(realm: RealmProcess) -> None:
    node = realm.create("orders")
    browser = realm.consumer(node, "browse")
    assert seen(browser) == []
    eids = realm.publish(node, bodies(5))
    assert by_store(browser.receive(5)) == by_store(eids)
    browser.subscription.close()
    browser.subscription.close()
    assert by_store(realm.consumer(node).receive(5)) == by_store(eids)


def test_it_may_look_for_some_only(realm: RealmProcess) -> None:
    node = realm.create("orders")
    eids = realm.publish(node, bodies(300))
    tens = Selection("tens", lambda values: [int(value) % 10 == 0 for value in values])
    assert by_store(seen(realm.consumer(node, "browse", selection=tens))) == by_store(eids[::10])


def prepared(realm: RealmProcess, properties: Properties | None = None) -> tuple[list[int], Consumer, Consumer]:
    """Nine events at a consumer, by turns over the stores, and a browser that has not looked yet."""
    node = realm.create("orders", "queue", properties or Properties())
    eids = realm.publish(node, bodies(9))
    consumer, browser = realm.consumer(node), realm.consumer(node, "browse")
    consumer.receive(9)
    return eids, consumer, browser


def at_once(browser: Consumer) -> list[int]:
    """What it is given before the realm has another turn."""
    got: list[int] = []
    while more := browser.take(4):
        got += more
    return got


ENDS: dict[str, dict[str, str]] = {"acknowledge": {}, "discard": {}, "dead-letter": {"reason": "rejected"}}


@pytest.mark.parametrize("operation", ENDS)
def test_it_never_sees_what_its_consumer_has_ended_before(realm: RealmProcess, operation: Operation) -> None:
    """Also while the journal does not hold it yet, and while its dead letter is read."""
    dead = realm.create("dead")
    eids, consumer, browser = prepared(realm, Properties(dead_letter="dead"))
    gone = [some[1] for some in by_store(eids).values()]
    owner = consumer.start(operation, gone, **ENDS[operation])
    early = at_once(browser)
    assert set(early) == {some[0] for some in by_store(eids).values()}, "what comes before it"
    assert browser.subscription.looking and not browser.subscription.is_searched()
    assert realm.settled(owner) == "done"
    assert sorted([*early, *seen(browser)]) == sorted(set(eids) - set(gone))
    letters = realm.consumer(dead).receive(len(gone)) if operation == "dead-letter" else gone
    assert len(letters) == len(gone)


def test_it_never_sees_what_a_commit_has_ended_before(realm: RealmProcess) -> None:
    eids, consumer, browser = prepared(realm)
    gone = [some[1] for some in by_store(eids).values()]
    assert consumer.reserve(gone)
    early = at_once(browser)
    assert sorted(early) == sorted(eids), "what a transaction holds is there"
    again = realm.consumer(browser.subscription.node.part(0), "browse")
    owner = object()
    realm.realm.commit(consumer.retire("acknowledge", gone), [], owner)
    early = at_once(again)
    assert not set(early) & set(gone)
    assert realm.answer(Committed, lambda answer: answer.owner is owner).answer == "done"
    assert sorted([*early, *seen(again)]) == sorted(set(eids) - set(gone))


def test_what_was_not_ended_after_all_is_there_again(realm: RealmProcess) -> None:
    """Its dead letter is larger than the log takes."""
    eids, consumer, browser = prepared(realm)
    some = by_store(eids)[0]
    assert consumer.reserve(some[1:2])
    [settlement] = consumer.retire("dead-letter", some[1:2])
    node = browser.subscription.node
    settlement.writes = [Write(node.topic, 0, b"1", b"x" * (RECORD_BYTES_MAX + 1))]
    settlement.owner = "too large"
    context_of(realm.realm).journal.add(settlement)
    early = at_once(browser)
    assert some[1] not in early
    assert realm.settled("too large") == "unexpected"
    assert by_store([*early, *seen(browser)]) == by_store(eids)


def test_what_is_given_back_is_there_all_the_time(realm: RealmProcess) -> None:
    eids, consumer, browser = prepared(realm)
    owner = consumer.start("return", eids, failed=True)
    assert by_store(at_once(browser)) == by_store(eids)
    assert realm.settled(owner) == "done"


def test_it_ends_with_its_node_and_with_the_owner(start: Start) -> None:
    realm = start()
    node, gone = realm.create("orders"), realm.create("gone")
    realm.publish(node, bodies(3))
    browser = realm.consumer(node, "browse")
    assert len(seen(browser)) == 3
    assert realm.subscribed(realm.create("news", "channel"), "browse").answer == "unexpected"
    assert gone.kind == "queue"
