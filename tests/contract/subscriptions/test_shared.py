"""The contract of the realm, continued: durables that several links share, and what tells them from exclusive ones; on
nodes of one store and of several."""

from __future__ import annotations

from dataclasses import replace

import pytest

from native_backend.nodes.durable_terms import EXCLUSIVE, DurableTerms
from native_backend.nodes.metadata_writer import realm_metadata
from tests.contract.actions import unsubscribe
from tests.kit.realm.fixtures import SPREAD, Start, bodies, realm, start, world
from tests.kit.realm.realm_process import Consumer, RealmProcess, by_store

__all__ = ["realm", "start", "world"]  # fixtures
pytestmark = SPREAD
SHARED = DurableTerms(shared=True)


def links(realm: RealmProcess, count: int, name: str = ":s") -> list[Consumer]:
    node = realm.find("news") or realm.create("news", "channel")
    return [realm.consumer(node, "durable", name, terms=SHARED) for _ in range(count)]


def test_links_of_a_shared_durable_compete_and_each_event_goes_to_one(realm: RealmProcess) -> None:
    first, other, third = links(realm, 3)
    eids = realm.publish(first.subscription.node, bodies(30))
    got = [*first.receive(10), *other.receive(10), *third.receive(10)]
    assert sorted(got) == sorted(eids)
    assert [consumer.drain() for consumer in (first, other, third)] == [[], [], []]


def test_a_link_that_takes_nothing_blocks_none_of_the_others(realm: RealmProcess) -> None:
    idle, taker, slow = links(realm, 3)
    eids = realm.publish(taker.subscription.node, bodies(50))
    got = slow.receive(1)
    got += taker.receive(49)
    assert sorted(got) == sorted(eids)
    assert idle.take() == []


def test_what_a_lost_link_had_goes_to_the_others_uncounted(realm: RealmProcess) -> None:
    consumer, other = links(realm, 2)
    eids = realm.publish(consumer.subscription.node, bodies(10))
    had = consumer.receive(6)
    assert by_store([*had, *other.receive(4)]) == by_store(eids)
    consumer.acknowledge(had[1:3])
    consumer.subscription.close()
    left = [had[0], *had[3:]]
    assert by_store(other.receive(4)) == by_store(left)
    assert {other.again[eid] for eid in left} == {True}
    assert {other.failed[eid] for eid in left} == {0}


def test_not_here_means_another_link_of_the_same_durable(realm: RealmProcess) -> None:
    consumer, other = links(realm, 2)
    eids = realm.publish(consumer.subscription.node, bodies(2))
    assert sorted(consumer.receive(2)) == sorted(eids)
    assert consumer.settle("return", eids[:1], failed=True, undeliverable_here=True) == "done"
    assert consumer.drain() == []
    assert other.receive(1) == eids[:1]
    assert other.failed == {eids[0]: 1}


@pytest.mark.parametrize(("held", "terms"), [(EXCLUSIVE, SHARED), (SHARED, EXCLUSIVE)], ids=["exclusive", "shared"])
def test_no_link_of_the_other_kind_gets_in_whether_or_not_it_is_in_use(
    start: Start, held: DurableTerms, terms: DurableTerms
) -> None:
    realm = start()
    node = realm.create("news", "channel")
    consumer = realm.consumer(node, "durable", "d", terms=held)
    assert realm.subscribed(node, "durable", "d", terms=terms).answer == "kind-differs"
    consumer.subscription.close()
    assert realm.subscribed(node, "durable", "d", terms=terms).answer == "kind-differs"
    realm.close()
    later = start()
    assert later.subscribed(node, "durable", "d", terms=terms).answer == "kind-differs"
    assert later.subscribed(node, "durable", "d", terms=held).answer == "ready"


def test_two_that_ask_for_a_new_durable_at_once_agree_on_its_kind(realm: RealmProcess) -> None:
    node = realm.create("news", "channel")
    kinds = [SHARED, EXCLUSIVE, SHARED]
    owners = [object() for _ in kinds]
    for owner, terms in zip(owners, kinds, strict=True):
        realm.ask(node, "durable", "d", owner, terms)
    assert [realm.subscribed_to(owner).answer for owner in owners] == ["ready", "kind-differs", "ready"]


def test_a_consumer_that_is_being_opened_refuses_other_selectors(realm: RealmProcess) -> None:
    """However far it has come: some of the durable's stores are open, others not yet."""
    node = realm.create("news", "channel")
    for turns in range(8):
        name = f"d{turns}"
        terms = {part: replace(SHARED, selector=part) for part in ("some", "others")}
        realm.ask(node, "durable", name, name, terms["some"])
        for _ in range(turns):
            realm.turn()
        assert realm.subscribed(node, "durable", name, terms=terms["others"]).answer == "in-use"
        assert unsubscribe(realm, name) in ("find: in-use", "find: not-found")
        begun = realm.subscribed_to(name)
        assert begun.subscription is not None
        some = Consumer(realm, begun.subscription)
        eids = realm.publish(node, bodies(6))
        assert sorted(some.receive(6)) == sorted(eids)


def test_shared_state_survives_a_kill_for_the_next_consumer(start: Start) -> None:
    realm = start()
    consumer, other = links(realm, 2)
    node = consumer.subscription.node
    eids = realm.publish(node, bodies(20))
    done = [*consumer.receive(10)[2:9], *other.receive(5)[2:4]]
    consumer.acknowledge(done[:7])
    other.acknowledge(done[7:])
    realm.kill()
    later = start()
    first, second = links(later, 2)
    got = [*first.receive(4), *second.receive(7)]
    assert sorted(got) == sorted(set(eids) - set(done))
    first.acknowledge(got[:4])
    second.acknowledge(got[4:])
    assert later.has_ended(node, eids, ":s")


def test_the_metadata_say_which_kind_it_is_and_the_terms_of_the_latest_attach_hold(start: Start) -> None:
    realm = start()
    node = realm.create("news", "channel")
    realm.consumer(node, "durable", "d").subscription.close()
    patient = DurableTerms(expiry="link-detach", timeout_s=3600)
    realm.consumer(node, "durable", "d", terms=patient).subscription.close()
    links(realm, 1)[0].subscription.close()

    def kept(log_of: RealmProcess) -> dict[str, DurableTerms]:
        return {name: record.terms for (_, name), record in realm_metadata(log_of.log, log_of.prefix).durables.items()}

    realm.until(lambda: kept(realm) == {"d": patient, ":s": SHARED}, "the terms to be seen")
    realm.close()
    assert kept(start()) == {"d": patient, ":s": SHARED}
