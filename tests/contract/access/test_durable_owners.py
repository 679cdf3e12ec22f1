"""The contract of the realm, continued: a durable belongs to the user who made it, on nodes of one store and of
several; who else may use it, and what becomes of those that have no owner."""

from __future__ import annotations

from dataclasses import replace

import orjson
import pytest

from native_backend.limits import RealmLimits
from native_backend.nodes.answers import Commanded, DurablesFound
from native_backend.nodes.commands import What
from native_backend.nodes.durable import Durable, DurableName, durable_key, encode_durable
from native_backend.nodes.durable_terms import EXCLUSIVE, VOLATILE, DurableTerms
from native_backend.nodes.grants import ANONYMOUS, Subject
from native_backend.nodes.metadata import realm_topic
from native_backend.nodes.metadata_writer import realm_metadata
from native_backend.nodes.node import Node
from native_backend.nodes.properties import Grant
from native_backend.subscriptions.subscription import Subscribe, Subscribed, SubscriptionLost
from tests.kit.realm.fixtures import SPREAD, Start, bodies, start, world
from tests.kit.realm.grants import on_node
from tests.kit.realm.realm_process import Consumer, RealmProcess, by_store

__all__ = ["start", "world"]  # fixtures
pytestmark = SPREAD

ALICE, BOB = Subject("alice"), Subject("bob", frozenset({"ops"}))
SHARED = DurableTerms(shared=True)
OTHERS = ("access-denied", "owned-by-another-user")
LIVE = RealmLimits(metadata_interval_s=0.02)
EVERY_USER = Grant("*", frozenset({"publish", "subscribe", "durable"}))


@pytest.fixture
def realm(start: Start) -> RealmProcess:
    return start(LIVE)


def ask(realm: RealmProcess, node: Node, subject: Subject, terms: DurableTerms = EXCLUSIVE, **more: object) -> object:
    owner = object()
    request = Subscribe(node, "durable", "c:d", owner, subject, terms, owned=True)
    realm.realm.subscribe(replace(request, **more), owner)  # type: ignore[arg-type]
    return owner


def subscribe(
    realm: RealmProcess, node: Node, subject: Subject, terms: DurableTerms = EXCLUSIVE, **more: object
) -> Subscribed:
    return realm.subscribed_to(ask(realm, node, subject, terms, **more))


def of(realm: RealmProcess, node: Node, subject: Subject, terms: DurableTerms = EXCLUSIVE) -> Consumer:
    subscribed = subscribe(realm, node, subject, terms)
    assert subscribed.subscription is not None, subscribed
    return Consumer(realm, subscribed.subscription)


def leave(consumer: Consumer) -> None:
    consumer.subscription.close()
    consumer.subscription.release()


def refusal(answer: Subscribed | DurablesFound) -> tuple[str, str]:
    return answer.answer, answer.native


def owners(realm: RealmProcess) -> dict[str, str]:
    """By node, as the records have it."""
    return {durable.node: durable.owner for durable in realm_metadata(realm.log, realm.prefix).durables.values()}


def find(realm: RealmProcess, subject: Subject) -> DurablesFound:
    owner = object()
    realm.realm.find_durables(DurableName("c:d"), subject, owner, True)
    return realm.answer(DurablesFound, lambda answer: answer.owner is owner)


def unsubscribe(realm: RealmProcess, durable: Durable) -> str:
    owner = object()
    realm.realm.unsubscribe(durable, owner)
    return realm.answer(Commanded, lambda answer: answer.owner is owner).answer


def begun_by_an_earlier_release(realm: RealmProcess, node: Node, terms: DurableTerms = EXCLUSIVE) -> None:
    """Its record has no owner."""
    starts = tuple(realm.log.control.bounds(part.topic, part.partition)[1] for part in node.parts)
    durable = Durable(node.name, "c:d", node.store, f"{realm.prefix}.g", starts[0], 0, terms, starts[1:])
    value = encode_durable(durable, realm.clock.epoch_us())
    assert "owner" not in orjson.loads(value)
    realm.log.control.put(realm_topic(realm.prefix), durable_key(node.name, "c:d"), value)
    realm.until(lambda: bool(realm.realm.durables()), "the record")


def test_another_user_gets_none_of_its_events_and_its_maker_all_also_after_a_restart(start: Start) -> None:
    realm = start()
    node = realm.create("news", "channel")
    alice = of(realm, node, ALICE)
    assert owners(realm) == {"news": "alice"}
    assert refusal(subscribe(realm, node, BOB)) == OTHERS, "while it is in use, too"
    leave(alice)
    eids = realm.publish(node, bodies(6))
    for other in (BOB, ANONYMOUS):
        for terms in (EXCLUSIVE, SHARED, replace(EXCLUSIVE, selector="a = 1")):
            assert refusal(subscribe(realm, node, other, terms)) == OTHERS
    realm.kill()
    later = start()
    assert refusal(subscribe(later, node, BOB)) == OTHERS
    assert owners(later) == {"news": "alice"}
    assert by_store(of(later, node, ALICE).receive(6)) == by_store(eids)


def test_a_grant_on_the_node_lets_another_user_in_and_its_end_ends_that(realm: RealmProcess) -> None:
    node = realm.create("news", "channel")
    leave(of(realm, node, ALICE))
    eids = realm.publish(node, bodies(4))
    on_node(realm, "news", EVERY_USER)
    assert refusal(subscribe(realm, node, BOB)) == OTHERS, "the right to use durables means one's own"
    on_node(realm, "news", EVERY_USER, Grant("group:ops", frozenset({"any-durable"})))
    bob = of(realm, node, BOB)
    assert by_store(bob.receive(4)) == by_store(eids)
    bob.acknowledge([some[0] for some in by_store(eids).values()][:1])
    assert owners(realm) == {"news": "alice"}
    on_node(realm, "news", EVERY_USER)
    lost = realm.answer(SubscriptionLost, lambda answer: answer.subscription is bob.subscription)
    assert (lost.answer, lost.native) == OTHERS
    leave(bob)
    assert len(of(realm, node, ALICE).receive(3)) == 3


def test_a_shared_one_has_links_of_its_user_only(realm: RealmProcess) -> None:
    node = realm.create("news", "channel")
    for terms in (SHARED, VOLATILE):
        links = [of(realm, node, ALICE, terms) for _ in range(2)]
        assert refusal(subscribe(realm, node, BOB, terms)) == OTHERS
        for link in links:
            leave(link)
        realm.command("delete", node, "c:d")


def test_of_two_users_that_begin_it_at_once_one_has_it(realm: RealmProcess) -> None:
    node = realm.create("news", "channel")
    lapsing = replace(SHARED, expiry="link-detach", timeout_s=1)
    requests = [ask(realm, node, subject, terms) for subject, terms in ((ALICE, SHARED), (BOB, lapsing))]
    first, second = (realm.subscribed_to(owner) for owner in requests)
    assert first.answer == "ready"
    assert refusal(second) == OTHERS
    assert owners(realm) == {"news": "alice"}
    assert [durable.terms for durable in realm.realm.durables()] == [SHARED], "nor has the other one changed it"


def test_one_of_an_earlier_release_belongs_to_the_first_user_with_a_login(start: Start) -> None:
    realm = start(LIVE)
    node = realm.create("news", "channel")
    begun_by_an_earlier_release(realm, node)
    leave(of(realm, node, ANONYMOUS))
    assert owners(realm) == {"news": ""}, "who has no login has no name that could be kept"
    eids = realm.publish(node, bodies(3))
    leave(of(realm, node, BOB))
    assert refusal(subscribe(realm, node, ALICE)) == OTHERS
    assert refusal(subscribe(realm, node, ANONYMOUS)) == OTHERS
    realm.close()
    later = start(LIVE)
    assert owners(later) == {"news": "bob"}
    assert refusal(subscribe(later, node, ALICE)) == OTHERS
    assert by_store(of(later, node, BOB).receive(3)) == by_store(eids)


def test_a_shared_one_of_an_earlier_release_stays_open(realm: RealmProcess) -> None:
    node = realm.create("news", "channel")
    begun_by_an_earlier_release(realm, node, SHARED)
    links = [of(realm, node, subject, SHARED) for subject in (ALICE, BOB, ANONYMOUS)]
    eids = realm.publish(node, bodies(6))
    got: list[int] = []

    def is_given() -> bool:
        got.extend(eid for link in links for eid in link.take())
        return len(got) >= len(eids)

    realm.until(is_given, "all of them")
    assert sorted(got) == sorted(eids)
    assert owners(realm) == {"news": ""}


def test_where_durables_belong_to_the_realm_every_user_may_use_each(realm: RealmProcess) -> None:
    node = realm.create("news", "channel")
    for subject in (ALICE, BOB):
        taken = subscribe(realm, node, subject, owned=False).subscription
        assert taken is not None
        leave(Consumer(realm, taken))
    assert owners(realm) == {"news": ""}
    leave(of(realm, node, ALICE))
    assert subscribe(realm, node, BOB, owned=False).answer == "ready", "also one that has an owner"
    assert owners(realm) == {"news": "alice"}


def test_another_users_durable_of_that_name_on_another_node_stays(realm: RealmProcess) -> None:
    news, more = realm.create("news", "channel"), realm.create("more", "channel")
    leave(of(realm, news, ALICE))
    eids = realm.publish(news, bodies(3))
    bob = subscribe(realm, more, BOB, only_here=True)
    assert bob.subscription is not None
    assert owners(realm) == {"news": "alice", "more": "bob"}
    assert by_store(of(realm, news, ALICE).receive(3)) == by_store(eids)


def test_who_looks_for_it_by_name_finds_his_own(realm: RealmProcess) -> None:
    news, more = realm.create("news", "channel"), realm.create("more", "channel")
    leave(of(realm, news, ALICE))
    assert refusal(find(realm, BOB)) == OTHERS
    leave(of(realm, more, BOB))
    assert [record.node for record in find(realm, BOB).durables] == ["more"]
    [durable] = find(realm, ALICE).durables
    assert unsubscribe(realm, durable) == "done"
    assert owners(realm) == {"more": "bob"}


def test_what_was_found_and_is_another_users_since_is_not_ended(realm: RealmProcess) -> None:
    node = realm.create("news", "channel")
    leave(of(realm, node, ALICE))
    [durable] = find(realm, ALICE).durables
    assert realm.command("delete", node, "c:d").answer == "done"
    leave(of(realm, node, BOB))
    assert unsubscribe(realm, durable) == "in-use"
    assert owners(realm) == {"news": "bob"}


def test_while_it_is_being_deleted_another_user_waits_and_begins_one(realm: RealmProcess) -> None:
    node = realm.create("news", "channel")
    leave(of(realm, node, ALICE))
    realm.publish(node, bodies(3))
    [durable] = find(realm, ALICE).durables
    ended = object()
    realm.realm.unsubscribe(durable, ended)
    request = ask(realm, node, BOB)
    bob = realm.subscribed_to(request)
    assert bob.subscription is not None, bob
    assert Consumer(realm, bob.subscription).drain() == []
    assert owners(realm) == {"news": "bob"}


def test_an_operator_seeks_purges_and_deletes_any_users_durable(realm: RealmProcess) -> None:
    node = realm.create("news", "channel")
    commands: tuple[What, ...] = ("purge", "seek")
    leave(of(realm, node, ALICE))
    realm.publish(node, bodies(4))
    for what in commands:
        for part in node.parts:
            assert realm.command(what, part, "c:d").answer == "done"
    assert owners(realm) == {"news": "alice"}
    assert realm.command("delete", node, "c:d").answer == "done"
    assert owners(realm) == {}
    leave(of(realm, node, BOB))
    assert owners(realm) == {"news": "bob"}
