"""The contract of the realm, continued: durables that several links share, and what tells them from exclusive ones."""

from __future__ import annotations

import pytest

from native_backend.metadata_writer import realm_metadata
from native_backend.terms import EXCLUSIVE, Terms
from tests.native_backend.gateway import Consumer, Gateway
from tests.native_backend.realm_world import Start, bodies, gateway, start, world

__all__ = ["gateway", "start", "world"]  # fixtures
SHARED = Terms(shared=True)


def links(gateway: Gateway, count: int, name: str = ":s") -> list[Consumer]:
    node = gateway.find("news") or gateway.create("news", "channel")
    return [gateway.consumer(node, "durable", name, terms=SHARED) for _ in range(count)]


def test_links_of_a_shared_durable_compete_and_each_event_goes_to_one(gateway: Gateway) -> None:
    one, other, third = links(gateway, 3)
    eids = gateway.publish(one.subscription.node, bodies(30))
    got = [*one.receive(10), *other.receive(10), *third.receive(10)]
    assert sorted(got) == eids
    assert [consumer.drain() for consumer in (one, other, third)] == [[], [], []]


def test_a_link_that_takes_nothing_blocks_none_of_the_others(gateway: Gateway) -> None:
    idle, one, slow = links(gateway, 3)
    eids = gateway.publish(one.subscription.node, bodies(50))
    got = slow.receive(1)
    got += one.receive(49)
    assert sorted(got) == eids
    assert idle.take() == []


def test_what_a_lost_link_had_goes_to_the_others_uncounted(gateway: Gateway) -> None:
    one, other = links(gateway, 2)
    eids = gateway.publish(one.subscription.node, bodies(10))
    assert one.receive(6) == eids[:6]
    assert other.receive(4) == eids[6:]
    one.acknowledge(eids[1:3])
    one.subscription.close()
    assert other.receive(4) == [eids[0], *eids[3:6]]
    assert {other.again[eid] for eid in (eids[0], *eids[3:6])} == {True}
    assert {other.failed[eid] for eid in (eids[0], *eids[3:6])} == {0}


def test_not_here_means_another_link_of_the_same_durable(gateway: Gateway) -> None:
    one, other = links(gateway, 2)
    eids = gateway.publish(one.subscription.node, bodies(2))
    assert one.receive(2) == eids
    assert one.settle("return", eids[:1], failed=True, elsewhere=True) == "done"
    assert one.drain() == []
    assert other.receive(1) == eids[:1]
    assert other.failed == {eids[0]: 1}


@pytest.mark.parametrize(("held", "asked"), [(EXCLUSIVE, SHARED), (SHARED, EXCLUSIVE)], ids=["exclusive", "shared"])
def test_no_link_of_the_other_kind_gets_in_whether_or_not_it_is_in_use(start: Start, held: Terms, asked: Terms) -> None:
    gateway = start()
    node = gateway.create("news", "channel")
    consumer = gateway.consumer(node, "durable", "d", terms=held)
    assert gateway.subscribed(node, "durable", "d", terms=asked).answer == "kind-differs"
    consumer.subscription.close()
    assert gateway.subscribed(node, "durable", "d", terms=asked).answer == "kind-differs"
    gateway.close()
    later = start()
    assert later.subscribed(node, "durable", "d", terms=asked).answer == "kind-differs"
    assert later.subscribed(node, "durable", "d", terms=held).answer == "ready"


def test_two_that_ask_for_a_new_durable_at_once_agree_on_its_kind(gateway: Gateway) -> None:
    node = gateway.create("news", "channel")
    asked = [SHARED, EXCLUSIVE, SHARED]
    owners = [object() for _ in asked]
    for owner, terms in zip(owners, asked, strict=True):
        gateway.ask(node, "durable", "d", owner, terms)
    assert [gateway.subscribed_to(owner).answer for owner in owners] == ["ready", "kind-differs", "ready"]


def test_shared_state_survives_a_kill_for_whoever_comes(start: Start) -> None:
    gateway = start()
    one, other = links(gateway, 2)
    node = one.subscription.node
    eids = gateway.publish(node, bodies(20))
    assert one.receive(10) + other.receive(5) == eids[:15]
    one.acknowledge(eids[2:9])
    other.acknowledge(eids[12:14])
    gateway.kill()
    later = start()
    first, second = links(later, 2)
    left = [*eids[:2], *eids[9:12], *eids[14:]]
    got = [*first.receive(4), *second.receive(len(left) - 4)]
    assert sorted(got) == left
    first.acknowledge(got[:4])
    second.acknowledge(got[4:])
    assert later.state(node, ":s").low == eids[-1] + 1


def test_the_metadata_say_which_kind_it_is_and_the_terms_of_the_latest_attach_hold(start: Start) -> None:
    gateway = start()
    node = gateway.create("news", "channel")
    gateway.consumer(node, "durable", "d").subscription.close()
    patient = Terms(expiry="link-detach", timeout_s=3600)
    gateway.consumer(node, "durable", "d", terms=patient).subscription.close()
    links(gateway, 1)[0].subscription.close()

    def kept(log_of: Gateway) -> dict[str, Terms]:
        return {name: one.terms for (_, name), one in realm_metadata(log_of.log, log_of.prefix).durables.items()}

    gateway.until(lambda: kept(gateway) == {"d": patient, ":s": SHARED}, "the terms to be seen")
    gateway.close()
    assert kept(start()) == {"d": patient, ":s": SHARED}
