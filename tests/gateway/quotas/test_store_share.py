"""How many stores are read for consumers: each once, whatever number of links and holders it has."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.quotas.shares import SharedLimit
from gateway.quotas.store_share import StoreShare
from native_backend.nodes.node import Node
from native_backend.nodes.properties import DEFAULT

QUEUE = Node("q", "queue", "q.topic", b"", 1)
WIDE = replace(QUEUE, name="wide", store=100, properties=replace(DEFAULT, partitions=3))


def queue(number: int) -> Node:
    return replace(QUEUE, name=f"q{number}", store=number)


def share(maximum: int, percent: int = 75) -> tuple[StoreShare, SharedLimit]:
    limit = SharedLimit("stores_read", "stores with consumers", maximum, lambda: percent)
    return StoreShare(limit), limit


def test_a_holder_may_have_three_quarters_and_another_one_finds_some() -> None:
    stores, limit = share(8)
    for number in range(6):
        assert not stores.refusal(queue(number), "user a")
        stores.join(queue(number), "user a")
    assert "user a has 6 of 8 stores with consumers" in stores.refusal(queue(6), "user a")
    assert not stores.refusal(queue(6), "user b")
    assert not stores.refusal(queue(0), "user a"), "it is read already"
    stores.leave(queue(0), "user a")
    assert limit.used == 5 and not stores.refusal(queue(6), "user a")


def test_consumers_of_one_node_count_once_and_the_next_holder_has_it() -> None:
    stores, limit = share(100)
    for holder in ("user a", "user a", "user b", "user c"):
        stores.join(WIDE, holder)
    assert limit.used == limit.held("user a") == 3
    stores.leave(WIDE, "user c")
    stores.leave(WIDE, "user a")
    assert limit.held("user a") == 3, "one of its links is left"
    stores.leave(WIDE, "user a")
    assert (limit.held("user a"), limit.held("user b"), limit.used) == (0, 3, 3)
    stores.leave(WIDE, "user b")
    assert limit.used == 0


def test_a_node_that_grew_gives_back_what_it_took() -> None:
    stores, limit = share(100)
    stores.join(QUEUE, "user a")
    stores.leave(replace(QUEUE, properties=replace(DEFAULT, partitions=5)), "user a")
    assert limit.used == 0


@pytest.mark.parametrize(("held", "words"), [(6, "3 stores with consumers more are wanted, and 2 of 8 are left"),
                                             (8, "all 8 stores with consumers are taken")])  # fmt: skip
def test_all_partitions_of_a_node_need_room(held: int, words: str) -> None:
    stores, _ = share(8, 100)
    for number in range(held):
        stores.join(queue(number), "user a")
    assert words in stores.refusal(WIDE, "user a")


def test_the_share_holds_for_several_at_once_as_for_one_by_one() -> None:
    for maximum in range(1, 30):
        for held in range(maximum):
            stores, limit = share(maximum)
            limit.take("user a", held)
            at_once = not stores.refusal(WIDE, "user a")
            one_by_one = True
            for _ in range(WIDE.partitions):
                one_by_one = one_by_one and not limit.refusal("user a")
                limit.take("user a")
            assert at_once == one_by_one, (maximum, held)
