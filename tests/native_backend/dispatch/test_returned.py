"""Events that come again, in numbers: scattered, sent elsewhere, taken by several links."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from native_backend.limits import RealmLimits
from tests.kit.realm.realm_process import RealmProcess
from tests.kit.realm.worlds import SimulatedWorld

LIMITS = RealmLimits(returned_scan=4)


@pytest.fixture
def realm() -> Iterator[RealmProcess]:
    world = SimulatedWorld("returned", None)
    yield RealmProcess(world, "r", LIMITS).open()
    world.close()


def test_scattered_ones_come_lowest_first_and_before_new_ones(realm: RealmProcess) -> None:
    node = realm.create("orders")
    eids = realm.publish(node, [b"body"] * 2000)
    consumer = realm.consumer(node)
    assert consumer.receive(1500) == eids[:1500]
    assert consumer.settle("return", eids[:1500:2][::-1], failed=True) == "done"
    assert consumer.receive(1250) == eids[:1500:2] + eids[1500:]
    assert [consumer.failed[eid] for eid in eids[:4]] == [1, 0, 1, 0]


def test_what_a_link_may_have_is_found_among_many_that_it_sent_elsewhere(realm: RealmProcess) -> None:
    node = realm.create("orders")
    eids = realm.publish(node, [b"body"] * 41)
    first = realm.consumer(node)
    assert first.receive(41) == eids
    assert first.settle("return", eids[:40:2], undeliverable_here=True) == "done"  # 20 stretches; a take looks at 4
    assert first.settle("return", [eids[40]]) == "done"
    assert first.receive(1) == [eids[40]]
    assert first.take() == []
    other = realm.consumer(node)
    assert other.receive(5) == eids[:10:2]
    first.subscription.close()
    again = realm.consumer(node)
    assert again.receive(36) == sorted(eids[10:40:2] + eids[1:40:2] + eids[40:])
