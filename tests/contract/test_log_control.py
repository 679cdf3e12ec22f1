"""The contract of the log port: single records, transactions, claims, group offsets.

Each sentence of `native_backend/log.py` that promises something is a test, for every driver.
"""

from __future__ import annotations

import threading

import pytest

from native_backend.log import Write
from tests.native_backend.logs.worlds import RECORD_BYTES_MAX, Ground, failure

# -- put


def test_put_returns_the_offset_of_the_record(ground: Ground) -> None:
    name = ground.topic("t", compacted=True)
    offsets = [ground.log.put(name, b"k%d" % index, b"%d" % index) for index in range(3)]
    ground.until(lambda: ground.log.bounds(name, 0)[1] > offsets[-1], "the end to pass the last record")
    assert ground.log.read_range(name, 0, 0, 10).offsets == offsets


def test_put_all_stores_in_order_and_returns_the_offsets(ground: Ground) -> None:
    name = ground.topic("t", compacted=True)
    keys = [b"k%d" % index for index in range(300)]
    values = [None if index % 7 == 0 else b"%d" % index for index in range(300)]
    offsets = ground.log.put_all(name, keys, values)
    assert offsets == sorted(offsets)
    ground.until(lambda: ground.log.bounds(name, 0)[1] > offsets[-1], "the end to pass the last record")
    found = ground.log.read_range(name, 0, 0, 1000)
    assert (found.offsets, found.keys, found.values) == (offsets, keys, values)
    assert failure(lambda: ground.log.put_all(name, [b"a", b"b"], [b"", b"x" * RECORD_BYTES_MAX])).cause == "too-large"


def test_put_of_a_record_that_is_too_large_says_so(ground: Ground) -> None:
    name = ground.topic("t", compacted=True)
    assert failure(lambda: ground.log.put(name, b"k", b"x" * (RECORD_BYTES_MAX + 1))).cause == "too-large"


def test_a_compacted_topic_keeps_the_newest_record_of_a_key(ground: Ground) -> None:
    name = ground.topic("t", compacted=True)
    for index in range(10):
        last = ground.log.put(name, b"k%d" % (index % 2), b"%d" % index)
    ground.until(lambda: ground.log.bounds(name, 0)[1] > last, "the end to pass the last record")
    found = ground.log.read_range(name, 0, 0, 100)
    newest = dict(zip(found.keys, found.values, strict=True))
    assert newest == {b"k0": b"8", b"k1": b"9"}


def test_control_calls_may_be_made_from_any_thread(ground: Ground) -> None:
    name = ground.topic("t")
    found: list[object] = []
    threads = [threading.Thread(target=lambda: found.append(ground.log.bounds(name, 0))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [(0, 0)] * 4


# -- transactions


def test_a_transaction_is_stored_whole_with_an_offset_for_each_write(ground: Ground) -> None:
    one, two = ground.topic("one"), ground.topic("two", partitions=2)
    ground.log.claim("s")
    writes = [Write(one, 0, b"a", b"1"), Write(two, 1, None, b"2"), Write(one, 0, b"b", b"3")]
    answer = ground.transact("s", writes)
    assert answer.failure is None
    assert len(answer.offsets) == 3
    first = ground.read(ground.log.open_reader(one, 0, 0), 2)
    assert first == [(answer.offsets[0], b"1", b"a"), (answer.offsets[2], b"3", b"b")]
    assert ground.read(ground.log.open_reader(two, 1, 0), 1) == [(answer.offsets[1], b"2", None)]


def test_a_transaction_that_fails_stores_nothing(ground: Ground) -> None:
    name = ground.topic("t")
    ground.log.claim("s")
    answer = ground.transact("s", [Write(name, 0, b"k", b"lost"), Write(f"{ground.prefix}.never", 0, b"k", b"v")])
    assert answer.failure is not None
    assert answer.failure.cause == "not-found"
    assert answer.offsets == [-1, -1]
    ground.log.claim("s")
    assert ground.transact("s", [Write(name, 0, b"k", b"kept")]).failure is None
    assert [value for _, value, _ in ground.read(ground.log.open_reader(name, 0, 0), 1)] == [b"kept"]


def test_a_transaction_with_a_record_too_large_says_so_and_the_next_one_works(ground: Ground) -> None:
    name = ground.topic("t")
    ground.log.claim("s")
    answer = ground.transact("s", [Write(name, 0, b"k", b"x" * (RECORD_BYTES_MAX + 1))])
    assert answer.failure is not None
    assert answer.failure.cause == "too-large"
    assert ground.transact("s", [Write(name, 0, b"k", b"kept")]).failure is None


def test_a_transaction_without_a_claim_is_fenced(ground: Ground) -> None:
    answer = ground.transact("nobody's", [Write(ground.topic("t"), 0, b"k", b"v")])
    assert answer.failure is not None
    assert answer.failure.cause == "fenced"


@pytest.mark.parametrize("before", [1, 2])
def test_only_one_of_two_claimants_may_transact(ground: Ground, before: int) -> None:
    """However many transactions the other one has had: all by which it may write is fenced."""
    name = ground.topic("t")
    rival = ground.world.open()
    ground.log.claim("s")
    for _ in range(before):
        assert ground.transact("s", [Write(name, 0, b"k", b"holder")]).failure is None
    rival.claim("s")
    winner, loser = rival, ground.log
    assert ground.transact("s", [Write(name, 0, b"k", b"winner")], winner).failure is None
    answer = ground.transact("s", [Write(name, 0, b"k", b"loser")], loser)
    assert answer.failure is not None
    assert answer.failure.cause == "fenced"
    read = ground.read(ground.log.open_reader(name, 0, 0), before + 1)
    assert [value for _, value, _ in read] == [b"holder"] * before + [b"winner"]


def test_the_holder_may_claim_again_and_other_shards_are_untouched(ground: Ground) -> None:
    name = ground.topic("t")
    for shard in ("s", "other", "s"):
        ground.log.claim(shard)
    for shard in ("s", "other"):
        assert ground.transact(shard, [Write(name, 0, b"k", shard.encode())]).failure is None


def test_a_successor_claims_what_its_predecessor_let_go(ground: Ground) -> None:
    name = ground.topic("t")
    first = ground.world.open()
    first.claim("s")
    assert ground.transact("s", [Write(name, 0, b"k", b"1")], first).failure is None
    first.close()
    ground.log.claim("s")
    assert ground.transact("s", [Write(name, 0, b"k", b"2")]).failure is None


# -- group offsets


def test_projected_positions_are_read_back_by_anyone(ground: Ground) -> None:
    name = ground.topic("t", partitions=2)
    group = f"{ground.prefix}.group"
    assert ground.log.projected(group) == {}
    ground.log.project(group, {(name, 0): (5, "realmgate1;3;0a1b"), (name, 1): (7, "")})
    ground.log.project(group, {(name, 0): (4, "m" * 4000)})
    assert ground.world.open().projected(group) == {(name, 0): (4, "m" * 4000), (name, 1): (7, "")}


def test_a_group_that_is_forgotten_has_no_positions(ground: Ground) -> None:
    name = ground.topic("t")
    group, other = f"{ground.prefix}.group", f"{ground.prefix}.other"
    ground.log.forget(group)  # there is none: no error
    ground.log.project(group, {(name, 0): (5, "")})
    ground.log.project(other, {(name, 0): (6, "")})
    ground.log.forget(group)
    assert ground.world.open().projected(group) == {}
    assert ground.log.projected(other) == {(name, 0): (6, "")}


def test_how_many_copies_are_certain(ground: Ground) -> None:
    """The broker of the tests is alone; a log without brokers does not count copies."""
    name = ground.topic("t")
    assert ground.log.certain_copies(name) == (1 if ground.world.name == "kafka" else None)


def test_metadata_that_is_too_long_is_refused(ground: Ground) -> None:
    place = (ground.topic("t"), 0)
    assert failure(lambda: ground.log.project(f"{ground.prefix}.g", {place: (1, "m" * 4001)})).cause == "too-large"
