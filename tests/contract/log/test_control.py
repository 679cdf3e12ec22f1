"""The contract of the log port: single records, transactions, claims, group offsets.

Each sentence of `native_backend/log/port.py` that promises something is a test, for every driver.
"""

from __future__ import annotations

import threading

import pytest

from native_backend.log.port import Write
from tests.kit.realm.worlds import RECORD_BYTES_MAX, OpenLog, failure

# -- put


def test_put_returns_the_offset_of_the_record(opened: OpenLog) -> None:
    name = opened.topic("t", compacted=True)
    offsets = [opened.log.control.put(name, b"k%d" % index, b"%d" % index) for index in range(3)]
    opened.until(lambda: opened.log.control.bounds(name, 0)[1] > offsets[-1], "the end to pass the last record")
    assert opened.log.control.read_range(name, 0, 0, 10).offsets == offsets


def test_put_all_stores_in_order_and_returns_the_offsets(opened: OpenLog) -> None:
    name = opened.topic("t", compacted=True)
    keys = [b"k%d" % index for index in range(300)]
    values = [None if index % 7 == 0 else b"%d" % index for index in range(300)]
    offsets = opened.log.control.put_all(name, keys, values)
    assert offsets == sorted(offsets)
    opened.until(lambda: opened.log.control.bounds(name, 0)[1] > offsets[-1], "the end to pass the last record")
    records = opened.log.control.read_range(name, 0, 0, 1000)
    assert (records.offsets, records.keys, records.values) == (offsets, keys, values)
    assert (
        failure(lambda: opened.log.control.put_all(name, [b"a", b"b"], [b"", b"x" * RECORD_BYTES_MAX])).cause
        == "too-large"
    )


def test_put_of_a_record_that_is_too_large_says_so(opened: OpenLog) -> None:
    name = opened.topic("t", compacted=True)
    assert failure(lambda: opened.log.control.put(name, b"k", b"x" * (RECORD_BYTES_MAX + 1))).cause == "too-large"


def test_a_compacted_topic_keeps_the_newest_record_of_a_key(opened: OpenLog) -> None:
    name = opened.topic("t", compacted=True)
    for index in range(10):
        last = opened.log.control.put(name, b"k%d" % (index % 2), b"%d" % index)
    opened.until(lambda: opened.log.control.bounds(name, 0)[1] > last, "the end to pass the last record")
    records = opened.log.control.read_range(name, 0, 0, 100)
    newest = dict(zip(records.keys, records.values, strict=True))
    assert newest == {b"k0": b"8", b"k1": b"9"}


def test_control_calls_may_be_made_from_any_thread(opened: OpenLog) -> None:
    name = opened.topic("t")
    bounds: list[object] = []
    threads = [threading.Thread(target=lambda: bounds.append(opened.log.control.bounds(name, 0))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert bounds == [(0, 0)] * 4


# -- transactions


def test_a_transaction_is_stored_whole_with_an_offset_for_each_write(opened: OpenLog) -> None:
    single, two = opened.topic("one"), opened.topic("two", partitions=2)
    opened.log.control.claim("s")
    writes = [Write(single, 0, b"a", b"1"), Write(two, 1, None, b"2"), Write(single, 0, b"b", b"3")]
    answer = opened.transact("s", writes)
    assert answer.failure is None
    assert len(answer.offsets) == 3
    first = opened.read(opened.log.open_reader(single, 0, 0), 2)
    assert first == [(answer.offsets[0], b"1", b"a"), (answer.offsets[2], b"3", b"b")]
    assert opened.read(opened.log.open_reader(two, 1, 0), 1) == [(answer.offsets[1], b"2", None)]


def test_a_transaction_that_fails_stores_nothing(opened: OpenLog) -> None:
    name = opened.topic("t")
    opened.log.control.claim("s")
    answer = opened.transact("s", [Write(name, 0, b"k", b"lost"), Write(f"{opened.prefix}.never", 0, b"k", b"v")])
    assert answer.failure is not None
    assert answer.failure.cause == "not-found"
    assert answer.offsets == [-1, -1]
    opened.log.control.claim("s")
    assert opened.transact("s", [Write(name, 0, b"k", b"kept")]).failure is None
    assert [value for _, value, _ in opened.read(opened.log.open_reader(name, 0, 0), 1)] == [b"kept"]


def test_a_transaction_with_a_record_too_large_says_so_and_the_next_one_works(opened: OpenLog) -> None:
    name = opened.topic("t")
    opened.log.control.claim("s")
    answer = opened.transact("s", [Write(name, 0, b"k", b"x" * (RECORD_BYTES_MAX + 1))])
    assert answer.failure is not None
    assert answer.failure.cause == "too-large"
    assert opened.transact("s", [Write(name, 0, b"k", b"kept")]).failure is None


def test_a_transaction_without_a_claim_is_fenced(opened: OpenLog) -> None:
    answer = opened.transact("unclaimed", [Write(opened.topic("t"), 0, b"k", b"v")])
    assert answer.failure is not None
    assert answer.failure.cause == "fenced"


@pytest.mark.parametrize("before", [1, 2])
def test_only_one_of_two_claimants_may_transact(opened: OpenLog, before: int) -> None:
    """However many transactions the other one has had: all by which it may write is fenced."""
    name = opened.topic("t")
    rival = opened.world.open()
    opened.log.control.claim("s")
    for _ in range(before):
        assert opened.transact("s", [Write(name, 0, b"k", b"holder")]).failure is None
    rival.control.claim("s")
    winner, loser = rival, opened.log
    assert opened.transact("s", [Write(name, 0, b"k", b"winner")], winner).failure is None
    answer = opened.transact("s", [Write(name, 0, b"k", b"loser")], loser)
    assert answer.failure is not None
    assert answer.failure.cause == "fenced"
    read = opened.read(opened.log.open_reader(name, 0, 0), before + 1)
    assert [value for _, value, _ in read] == [b"holder"] * before + [b"winner"]


def test_the_holder_may_claim_again_and_other_shards_are_untouched(opened: OpenLog) -> None:
    name = opened.topic("t")
    for shard in ("s", "other", "s"):
        opened.log.control.claim(shard)
    for shard in ("s", "other"):
        assert opened.transact(shard, [Write(name, 0, b"k", shard.encode())]).failure is None


def test_a_successor_claims_what_its_predecessor_let_go(opened: OpenLog) -> None:
    name = opened.topic("t")
    first = opened.world.open()
    first.control.claim("s")
    assert opened.transact("s", [Write(name, 0, b"k", b"1")], first).failure is None
    first.close()
    opened.log.control.claim("s")
    assert opened.transact("s", [Write(name, 0, b"k", b"2")]).failure is None


# -- group offsets


def test_projected_positions_are_read_back_by_any_client(opened: OpenLog) -> None:
    name = opened.topic("t", partitions=2)
    group = f"{opened.prefix}.group"
    assert opened.log.control.projected(group) == {}
    opened.log.control.project(group, {(name, 0): (5, "realmgate1;3;0a1b"), (name, 1): (7, "")})
    opened.log.control.project(group, {(name, 0): (4, "m" * 4000)})
    assert opened.world.open().control.projected(group) == {(name, 0): (4, "m" * 4000), (name, 1): (7, "")}


def test_a_group_that_is_forgotten_has_no_positions(opened: OpenLog) -> None:
    name = opened.topic("t")
    group, other = f"{opened.prefix}.group", f"{opened.prefix}.other"
    opened.log.control.forget(group)  # there is none: no error
    opened.log.control.project(group, {(name, 0): (5, "")})
    opened.log.control.project(other, {(name, 0): (6, "")})
    opened.log.control.forget(group)
    assert opened.world.open().control.projected(group) == {}
    assert opened.log.control.projected(other) == {(name, 0): (6, "")}


def test_how_many_copies_are_certain(opened: OpenLog) -> None:
    """The broker of the tests is alone; a log without brokers does not count copies."""
    name = opened.topic("t")
    assert opened.log.control.certain_copies(name) == (1 if opened.world.name == "kafka" else None)
    seen = opened.log.control.inspect([name, "not-there"])
    assert (seen is not None) == (opened.world.name == "kafka")
    if seen is not None:
        assert (seen.brokers, [*seen.topics], seen.topics[name].replicas, seen.topics[name].in_sync) == (
            1,
            [name],
            1,
            1,
        )
        assert seen.topics[name].settings["retention.ms"] == "-1" and seen.version[0].isdigit()
        assert seen.free_bytes is None or seen.free_bytes > 0
        assert not seen.unread, "what is not there is not unread"
        less = opened.log.control.inspect([name], whole=False)
        assert less is not None and less.topics == seen.topics
        assert (less.brokers, less.version, less.free_bytes) == (seen.brokers, "", None), "no broker is asked for these"


def test_how_large_a_record_of_a_topic_is_at_most(opened: OpenLog) -> None:
    """Here the log takes less than its topics; one that is not there has the size that every log takes."""
    names = [opened.topic("t"), opened.topic("u"), "no-such-topic"]
    assert opened.log.control.record_bytes_max(names) == dict.fromkeys(names, RECORD_BYTES_MAX)


def test_metadata_that_is_too_long_is_refused(opened: OpenLog) -> None:
    place = (opened.topic("t"), 0)
    assert (
        failure(lambda: opened.log.control.project(f"{opened.prefix}.g", {place: (1, "m" * 4001)})).cause == "too-large"
    )
