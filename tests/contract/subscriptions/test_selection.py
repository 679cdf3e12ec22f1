"""The contract of the realm, continued: links that want some of the events only; on nodes of one store and of
several."""

from __future__ import annotations

import random

import pytest

from native_backend.events.selection import Selection
from native_backend.limits import RealmLimits
from native_backend.nodes.durable_terms import DurableTerms
from native_backend.nodes.node import Node
from native_backend.subscriptions.partitioned import eids_of, partition_of
from tests.contract.actions import entries, places_in
from tests.kit.realm.fixtures import SMALL, SPREAD, Start, bodies, realm, start, world
from tests.kit.realm.realm_process import Consumer, RealmProcess, by_store
from tests.kit.realm.worlds import SimulatedWorld, World

__all__ = ["realm", "start", "world"]  # fixtures
pytestmark = SPREAD


def every(step: int, rest: int = 0) -> Selection:
    """Bodies are numbers: those that leave that rest."""
    return Selection(f"{step}:{rest}", lambda values: [int(value) % step == rest for value in values])


NOTHING = Selection("nothing", lambda values: [False] * len(values))


def filtered(realm: RealmProcess, node: Node) -> list[int]:
    """The places of what the journal says was passed over for good."""
    return sorted(places_in(node, entries(realm, "filtered")))


def test_a_plain_subscription_gets_what_matches(realm: RealmProcess) -> None:
    node = realm.create("news", "channel")
    chosen, all_ = realm.consumer(node, "plain", selection=every(10)), realm.consumer(node, "plain")
    eids = realm.publish(node, bodies(500))
    assert by_store(chosen.receive(50)) == by_store(eids[::10])
    assert chosen.drain() == []
    assert by_store(all_.receive(500)) == by_store(eids)


def test_what_a_durable_is_not_for_has_ended_for_it(start: Start) -> None:
    realm = start()
    node = realm.create("news", "channel")
    chosen = realm.consumer(node, "durable", "d", selection=every(10, 3))
    realm.consumer(node, "durable", "other")
    eids = realm.publish(node, bodies(100))
    assert by_store(chosen.receive(10)) == by_store(eids[3::10])
    chosen.acknowledge(eids[3:93:10])  # all but the last one
    assert chosen.drain() == []
    realm.until(lambda: len(filtered(realm, node)) == 90, "what was filtered")
    assert filtered(realm, node) == sorted(set(eids) - set(eids[3::10]))
    kept, at = eids_of(eids[93:94])[0], partition_of(eids[93])
    assert realm.states(node, "d")[at].low == kept
    assert realm.states(node, "other")[at].unsettled == 0, "nothing was given to others"
    assert realm.states(node, "other")[at].low < kept, "nothing has ended for others"
    realm.kill()
    again = start()
    survivor = again.consumer(node, "durable", "d", selection=every(10, 3))
    assert survivor.receive(1) == [eids[93]]
    assert survivor.drain() == []


def test_what_a_killed_process_had_not_yet_filtered_is_filtered_later(start: Start) -> None:
    realm = start()
    node = realm.create("news", "channel")
    chosen = realm.consumer(node, "durable", "d", selection=every(10, 9))
    eids = realm.publish(node, bodies(30))
    realm.until(lambda: bool(chosen.take(1)), "the first match")
    realm.kill()  # what was passed over on the way there may be in the journal or not
    again = start()
    survivor = again.consumer(node, "durable", "d", selection=every(10, 9))
    assert by_store(survivor.receive(3)) == by_store(eids[9::10])
    survivor.acknowledge(eids[9::10])
    # It has credit left: a store whose events all fail the selector is looked at by who asks for more.
    assert survivor.drain() == []
    again.until(lambda: again.has_ended(node, eids, "d"), "everything to have ended")


def test_another_selector_is_another_durable(start: Start) -> None:
    """As JMS has it: like unsubscribing, and subscribing anew. Also in a later process."""
    realm = start()
    node = realm.create("news", "channel")
    tens = realm.consumer(node, "durable", "d", selection=every(10))
    eids = realm.publish(node, bodies(30))
    assert by_store(tens.receive(3)) == by_store(eids[::10])
    assert realm.subscribed(node, "durable", "d", selection=every(5)).answer == "in-use"
    tens.subscription.close()
    again = realm.consumer(node, "durable", "d", selection=every(10))
    assert by_store(again.receive(3)) == by_store(eids[::10]), "the same selector: the same durable"
    again.subscription.close()
    fives = realm.consumer(node, "durable", "d", selection=every(5))
    assert fives.drain() == [], "it begins now"
    later = realm.publish(node, bodies(10))
    assert by_store(fives.receive(2)) == by_store(later[::5])
    realm.kill()
    survivor = start()
    all_ = survivor.consumer(node, "durable", "d")
    assert all_.drain() == []
    last = survivor.publish(node, bodies(4))
    assert by_store(all_.receive(4)) == by_store(last)


def test_the_links_of_a_shared_durable_have_one_selector(realm: RealmProcess) -> None:
    node = realm.create("news", "channel")
    shared = DurableTerms(shared=True)
    first, second = (realm.consumer(node, "durable", "s", terms=shared, selection=every(2)) for _ in range(2))
    assert realm.subscribed(node, "durable", "s", terms=shared).answer == "in-use"
    eids = realm.publish(node, bodies(40))
    realm.until(lambda: bool(first.take(5)), "the first five")
    got = [*first.seqs, *second.drain()]
    assert sorted(got) == sorted(eids[::2])
    realm.until(lambda: len(filtered(realm, node)) == 20, "what was filtered, once")


def test_two_that_begin_a_shared_durable_anew_at_once_have_one_selector(realm: RealmProcess) -> None:
    """Both find a durable of other events, without links, and wait for its end: the second one is refused."""
    node = realm.create("news", "channel")
    shared, names = DurableTerms(shared=True), ("the first", "the second")
    realm.consumer(node, "durable", "s", terms=shared, selection=every(3)).subscription.close()
    for owner, rest in zip(names, (0, 1), strict=True):
        realm.ask(node, "durable", "s", owner, shared, selection=every(2, rest))
    begun = [realm.subscribed_to(owner) for owner in names]
    assert [reply.answer for reply in begun] == ["ready", "in-use"]
    assert begun[0].subscription is not None
    evens = Consumer(realm, begun[0].subscription)
    eids = realm.publish(node, bodies(24))
    assert sorted(evens.receive(12)) == sorted(eids[::2])
    assert evens.drain() == []
    realm.until(lambda: filtered(realm, node) == sorted(eids[1::2]), "the rest to be filtered")


def test_a_queue_keeps_for_others_what_a_link_passes_over(realm: RealmProcess) -> None:
    node = realm.create("orders")
    chosen = realm.consumer(node, selection=every(10, 5))
    eids = realm.publish(node, bodies(100))
    assert by_store(chosen.receive(10)) == by_store(eids[5::10])
    assert chosen.drain() == []
    other = realm.consumer(node)
    rest = [eid for eid in eids if eid not in eids[5::10]]
    assert by_store(other.receive(90)) == by_store(rest)
    assert not any(other.again.values()), "no one had them before"
    other.acknowledge(rest)
    chosen.acknowledge(eids[5::10])
    assert realm.has_ended(node, eids)
    assert filtered(realm, node) == []


def test_links_with_different_selectors_share_a_queue(start: Start) -> None:
    """Also where what one passed over has left the window: each reads for itself."""
    realm = start(SMALL)
    node = realm.create("orders")
    eids = realm.publish(node, bodies(300))
    none = realm.consumer(node, selection=NOTHING)
    assert none.drain() == []
    fives, sevens = realm.consumer(node, selection=every(10, 5)), realm.consumer(node, selection=every(10, 7))
    got: dict[str, list[int]] = {"fives": [], "sevens": []}

    def enough() -> bool:
        got["fives"] += fives.take(1)
        got["sevens"] += sevens.take(10)
        return len(got["fives"]) == 30 == len(got["sevens"])

    realm.until(enough, "thirty each")
    wanted = {"fives": eids[5::10], "sevens": eids[7::10]}
    assert {name: by_store(places) for name, places in got.items()} == {
        name: by_store(places) for name, places in wanted.items()
    }
    [first] = realm.consumer(node).receive(1)
    assert first in eids[: node.partitions]


def test_what_is_returned_is_given_to_a_link_that_it_matches(realm: RealmProcess) -> None:
    node = realm.create("orders")
    eids = realm.publish(node, bodies(40))
    first, second = realm.consumer(node, selection=every(2)), realm.consumer(node, selection=every(2))
    assert by_store(first.receive(20)) == by_store(eids[::2])
    assert first.settle("return", eids[4:10:2], failed=True) == "done"
    assert first.settle("return", [eids[10]], undeliverable_here=True) == "done"
    assert by_store(first.receive(3)) == by_store(eids[4:10:2])
    assert first.drain() == []
    assert [first.failed[eid] for eid in eids[4:10:2]] == [1, 1, 1]
    assert second.receive(1) == [eids[10]]
    assert second.again[eids[10]]


def test_one_match_behind_very_many_events_holds_up_no_other_link(start: Start) -> None:
    """The rare one is found; meanwhile another link of the same queue and one of another node go on."""
    realm = start(RealmLimits(selection_scan=200))
    node, other = realm.create("orders"), realm.create("bills")
    realm.publish(other, bodies(10))
    eids = realm.publish(node, bodies(3000))
    rare = realm.consumer(node, selection=every(3000, 2999))
    beside, away = realm.consumer(node), realm.consumer(other)
    realm.until(lambda: rare.take() == [] and rare.subscription.looking, "the search to begin")
    assert away.receive(10)
    served = beside.receive(100)
    assert all(some == by_store(eids)[at][: len(some)] for at, some in by_store(served).items()), "from the beginning"
    turns = 0

    def found() -> bool:
        nonlocal turns
        turns += 1
        return rare.take() == eids[-1:]

    realm.until(found, "the match")
    assert turns >= 2800 / 200 / 2, "no more than its share in a turn"
    realm.until(lambda: not rare.take() and not rare.subscription.looking, "the end of the search")
    assert all(len(state.returned) <= 2 for state in realm.states(node)), "what was passed over is one stretch"


def test_a_link_gets_no_further_than_what_it_may_pass_over(start: Start) -> None:
    realm = start(RealmLimits(passed_ranges=5))
    node = realm.create("orders")
    eids = realm.publish(node, bodies(50 * node.partitions))
    chosen = realm.consumer(node, selection=every(2))
    got = chosen.linger(100)  # it gets no further: its search never ends
    assert len(got) < 25 * node.partitions, "not all that match"
    assert all(len(state.returned) <= 5 for state in realm.states(node))
    others = realm.consumer(node)
    rest = [*others.linger(100), *chosen.linger(100), *others.linger(100)]
    assert sorted([*got, *rest]) == sorted(eids)


@pytest.mark.parametrize("seed", range(6))
def test_each_event_ends_once_at_a_consumer_whose_selector_matches_it(world: World, start: Start, seed: int) -> None:
    """Links with and without selectors come, go, take, acknowledge, return and are killed. On a real log fewer times:
    each act waits for it."""
    random_ = random.Random(seed)
    steps = 150 if isinstance(world, SimulatedWorld) else 40
    realm = start(SMALL if seed % 2 else RealmLimits(selection_scan=50))
    node = realm.create("orders")
    eids: list[int] = []
    ended: dict[int, int] = {}
    links: list[tuple[Consumer, int, set[int]]] = []
    for _ in range(steps):
        chance = random_.random()
        if chance < 0.15:
            fresh = [b"%08d" % at for at in range(len(eids), len(eids) + random_.randrange(1, 30))]
            eids += realm.publish(node, fresh)
        elif chance < 0.3 and len(links) < 4:
            rest = random_.choice([-1, 0, 1, 2])
            selection = None if rest < 0 else every(3, rest)
            links.append((realm.consumer(node, selection=selection), rest, set()))
        elif links and chance < 0.9:
            consumer, rest, held = random_.choice(links)
            got = consumer.take(random_.choice([1, 5, 100]))
            assert all(rest < 0 or int(consumer.bodies[eid]) % 3 == rest for eid in got)
            held.update(got)
            some = sorted(held)[: random_.randrange(1, 20)]
            if some and random_.random() < 0.6:
                consumer.acknowledge(some)
                ended.update({eid: 1 + ended.get(eid, 0) for eid in some})
                held.difference_update(some)
            elif some:
                assert consumer.settle("return", some[:3], failed=random_.random() < 0.5) == "done"
                held.difference_update(some[:3])
        elif links and chance < 0.97:
            consumer, _, _ = links.pop(random_.randrange(len(links)))
            consumer.subscription.close()
        elif chance >= 0.99:
            realm.kill()
            realm, links = start(SMALL), []
        realm.turn()
    for consumer, _, _ in links:
        consumer.subscription.close()
    last = realm.consumer(node)
    rest_of = sorted(set(eids) - ended.keys())
    assert sorted(last.receive(len(rest_of))) == rest_of if rest_of else True
    assert last.drain() == []
    assert set(ended.values()) <= {1}
