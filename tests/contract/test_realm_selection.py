"""The contract of the realm, continued: links that want some of the events only."""

from __future__ import annotations

import random

import pytest

from native_backend.limits import RealmLimits
from native_backend.selection import Selection
from native_backend.terms import Terms
from tests.contract.test_realm_dead_letters import entries
from tests.native_backend.gateway import Consumer, Gateway
from tests.native_backend.realm_world import SMALL, Start, bodies, gateway, start, world

__all__ = ["gateway", "start", "world"]  # fixtures


def every(step: int, rest: int = 0) -> Selection:
    """Bodies are numbers: those that leave that rest."""
    return Selection(f"{step}:{rest}", lambda values: [int(value) % step == rest for value in values])


NOTHING = Selection("nothing", lambda values: [False] * len(values))


def filtered(gateway: Gateway) -> list[int]:
    runs = [run for entry in entries(gateway, "filtered") for run in entry["runs"]]  # type: ignore[attr-defined]
    return sorted(eid for first, last, _, _ in runs for eid in range(first, last + 1))


def test_a_plain_subscription_gets_what_matches(gateway: Gateway) -> None:
    node = gateway.create("news", "channel")
    chosen, all_ = gateway.consumer(node, "plain", selection=every(10)), gateway.consumer(node, "plain")
    eids = gateway.publish(node, bodies(500))
    assert chosen.receive(50) == eids[::10]
    assert chosen.drain() == []
    assert all_.receive(500) == eids


def test_what_a_durable_is_not_for_has_ended_for_it(start: Start) -> None:
    gateway = start()
    node = gateway.create("news", "channel")
    chosen = gateway.consumer(node, "durable", "d", selection=every(10, 3))
    gateway.consumer(node, "durable", "other")
    eids = gateway.publish(node, bodies(100))
    assert chosen.receive(10) == eids[3::10]
    chosen.acknowledge(eids[3:93:10])  # all but the last one
    assert chosen.drain() == []
    gateway.until(lambda: len(filtered(gateway)) == 90, "what was filtered")
    assert filtered(gateway) == [eid for eid in eids if eid not in eids[3::10]]
    assert gateway.state(node, "d").low == eids[93]
    assert gateway.state(node, "other").low == eids[0], "nothing has ended for others"
    gateway.kill()
    again = start()
    survivor = again.consumer(node, "durable", "d", selection=every(10, 3))
    assert survivor.receive(1) == [eids[93]]
    assert survivor.drain() == []


def test_what_a_killed_process_had_not_yet_filtered_is_filtered_later(start: Start) -> None:
    gateway = start()
    node = gateway.create("news", "channel")
    chosen = gateway.consumer(node, "durable", "d", selection=every(10, 9))
    eids = gateway.publish(node, bodies(30))
    gateway.until(lambda: bool(chosen.take(1)), "the first match")
    gateway.kill()  # what was passed over on the way there may be in the journal or not
    again = start()
    survivor = again.consumer(node, "durable", "d", selection=every(10, 9))
    assert survivor.receive(3) == eids[9::10]
    survivor.acknowledge(eids[9::10])
    again.until(lambda: again.state(node, "d").low == eids[-1] + 1, "everything to have ended")


def test_another_selector_is_another_durable(start: Start) -> None:
    """As JMS has it: like unsubscribing, and subscribing anew. Also in a later process."""
    gateway = start()
    node = gateway.create("news", "channel")
    tens = gateway.consumer(node, "durable", "d", selection=every(10))
    eids = gateway.publish(node, bodies(30))
    assert tens.receive(3) == eids[::10]
    assert gateway.subscribed(node, "durable", "d", selection=every(5)).answer == "in-use"
    tens.subscription.close()
    again = gateway.consumer(node, "durable", "d", selection=every(10))
    assert again.receive(3) == eids[::10], "the same selector: the same durable"
    again.subscription.close()
    fives = gateway.consumer(node, "durable", "d", selection=every(5))
    assert fives.drain() == [], "it begins now"
    later = gateway.publish(node, bodies(10))
    assert fives.receive(2) == later[::5]
    gateway.kill()
    survivor = start()
    all_ = survivor.consumer(node, "durable", "d")
    assert all_.drain() == []
    last = survivor.publish(node, bodies(4))
    assert all_.receive(4) == last


def test_the_links_of_a_shared_durable_have_one_selector(gateway: Gateway) -> None:
    node = gateway.create("news", "channel")
    shared = Terms(shared=True)
    first, second = (gateway.consumer(node, "durable", "s", terms=shared, selection=every(2)) for _ in range(2))
    assert gateway.subscribed(node, "durable", "s", terms=shared).answer == "in-use"
    eids = gateway.publish(node, bodies(40))
    gateway.until(lambda: bool(first.take(5)), "the first five")
    got = [*first.seqs, *second.drain()]
    assert sorted(got) == eids[::2]
    gateway.until(lambda: len(filtered(gateway)) == 20, "what was filtered, once")


def test_a_queue_keeps_for_others_what_a_link_passes_over(gateway: Gateway) -> None:
    node = gateway.create("orders")
    chosen = gateway.consumer(node, selection=every(10, 5))
    eids = gateway.publish(node, bodies(100))
    assert chosen.receive(10) == eids[5::10]
    assert chosen.drain() == []
    other = gateway.consumer(node)
    rest = [eid for eid in eids if eid not in eids[5::10]]
    assert other.receive(90) == rest
    assert not any(other.again.values()), "nobody had them before"
    other.acknowledge(rest)
    chosen.acknowledge(eids[5::10])
    assert gateway.state(node).low == eids[-1] + 1
    assert filtered(gateway) == []


def test_links_with_different_selectors_share_a_queue(start: Start) -> None:
    """Also where what one passed over has left the window: each reads for itself."""
    gateway = start(SMALL)
    node = gateway.create("orders")
    eids = gateway.publish(node, bodies(300))
    none = gateway.consumer(node, selection=NOTHING)
    assert none.drain() == []
    fives, sevens = gateway.consumer(node, selection=every(10, 5)), gateway.consumer(node, selection=every(10, 7))
    got: dict[str, list[int]] = {"fives": [], "sevens": []}

    def enough() -> bool:
        got["fives"] += fives.take(1)
        got["sevens"] += sevens.take(10)
        return len(got["fives"]) == 30 == len(got["sevens"])

    gateway.until(enough, "thirty each")
    assert got == {"fives": eids[5::10], "sevens": eids[7::10]}
    assert gateway.consumer(node).receive(1) == eids[:1]


def test_what_is_returned_is_given_to_a_link_that_it_matches(gateway: Gateway) -> None:
    node = gateway.create("orders")
    eids = gateway.publish(node, bodies(40))
    first, second = gateway.consumer(node, selection=every(2)), gateway.consumer(node, selection=every(2))
    assert first.receive(20) == eids[::2]
    assert first.settle("return", eids[4:10:2], failed=True) == "done"
    assert first.settle("return", [eids[10]], elsewhere=True) == "done"
    assert first.receive(3) == eids[4:10:2]
    assert first.drain() == []
    assert [first.failed[eid] for eid in eids[4:10:2]] == [1, 1, 1]
    assert second.receive(1) == [eids[10]]
    assert second.again[eids[10]]


def test_one_match_behind_very_many_holds_nobody_up(start: Start) -> None:
    """The rare one is found; meanwhile another link of the same queue and one of another node go on."""
    gateway = start(RealmLimits(selection_scan=200))
    node, other = gateway.create("orders"), gateway.create("bills")
    gateway.publish(other, bodies(10))
    eids = gateway.publish(node, bodies(3000))
    rare = gateway.consumer(node, selection=every(3000, 2999))
    beside, away = gateway.consumer(node), gateway.consumer(other)
    gateway.until(lambda: rare.take() == [] and rare.subscription.looking, "the search to begin")
    assert away.receive(10)
    served = beside.receive(100)
    assert served == eids[:100]
    turns = 0

    def found() -> bool:
        nonlocal turns
        turns += 1
        return rare.take() == eids[-1:]

    gateway.until(found, "the match")
    assert turns >= 2800 / 200 / 2, "no more than its share in a turn"
    assert not rare.subscription.looking
    assert len(gateway.state(node).returned) <= 2, "what was passed over is one stretch"


def test_a_link_gets_no_further_than_what_it_may_pass_over(start: Start) -> None:
    gateway = start(RealmLimits(passed_ranges=5))
    node = gateway.create("orders")
    eids = gateway.publish(node, bodies(50))
    chosen = gateway.consumer(node, selection=every(2))
    got = chosen.linger(30)
    assert len(got) <= 7
    others = gateway.consumer(node).receive(40)
    assert sorted([*got, *others, *chosen.linger(30)])[:40] == eids[:40]


@pytest.mark.parametrize("seed", range(6))
def test_whoever_takes_every_event_ends_once_and_by_one_who_wanted_it(start: Start, seed: int) -> None:
    """Links with and without selectors come, go, take, acknowledge, return and are killed."""
    random_ = random.Random(seed)
    gateway = start(SMALL if seed % 2 else RealmLimits(selection_scan=50))
    node = gateway.create("orders")
    eids: list[int] = []
    ended: dict[int, int] = {}
    links: list[tuple[Consumer, int, set[int]]] = []
    for _ in range(150):
        act = random_.random()
        if act < 0.15:
            fresh = [b"%08d" % at for at in range(len(eids), len(eids) + random_.randrange(1, 30))]
            eids += gateway.publish(node, fresh)
        elif act < 0.3 and len(links) < 4:
            rest = random_.choice([-1, 0, 1, 2])
            selection = None if rest < 0 else every(3, rest)
            links.append((gateway.consumer(node, selection=selection), rest, set()))
        elif links and act < 0.9:
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
        elif links and act < 0.97:
            consumer, _, _ = links.pop(random_.randrange(len(links)))
            consumer.subscription.close()
        elif act >= 0.99:
            gateway.kill()
            gateway, links = start(SMALL), []
        gateway.turn()
    for consumer, _, _ in links:
        consumer.subscription.close()
    last = gateway.consumer(node)
    rest_of = [eid for eid in eids if eid not in ended]
    assert sorted(last.receive(len(rest_of))) == rest_of if rest_of else True
    assert last.drain() == []
    assert set(ended.values()) <= {1}
