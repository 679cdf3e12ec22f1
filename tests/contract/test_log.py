"""The contract of the log port: one suite, every driver. Each sentence of `native_backend/log.py` that promises
something is a test here. The simulated log runs twice: faultless, and with every fault that does not lose an answer."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from native_backend.log import Append, Appended, Failure, LogError, TopicSpec, Write
from native_backend.logs.simulated.faults import Faults
from tests.native_backend.logs.worlds import (
    RECORD_BYTES_MAX,
    Ground,
    KafkaWorld,
    SimulatedWorld,
    SqliteWorld,
    World,
)

pytestmark = [  # kafka-python 3.0.12 reads its schemas by a deprecated call
    pytest.mark.filterwarnings("ignore:(read|open)_text is deprecated:DeprecationWarning"),
]
UNEVEN = Faults(gap=0.5, split=0.5, delay=0.8, lag=0.5, stall=0.3)


@pytest.fixture(params=["sqlite", "simulated", "uneven", "kafka"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    made: World
    if request.param == "sqlite":
        made = SqliteWorld(tmp_path / "realm")
    elif request.param == "kafka":
        made = KafkaWorld(request.getfixturevalue("kafka_bootstrap"))
    else:
        made = SimulatedWorld(request.param, UNEVEN if request.param == "uneven" else None)
    yield made
    made.close()


@pytest.fixture
def ground(world: World) -> Ground:
    return Ground(world)


def failure(call: Callable[[], object]) -> Failure:
    with pytest.raises(LogError) as raised:
        call()
    return raised.value.failure


# -- topics


def test_a_created_topic_has_an_id_and_its_partitions(ground: Ground) -> None:
    (topic,) = ground.log.create_topics([TopicSpec(f"{ground.prefix}.t", 3)])
    assert topic.name == f"{ground.prefix}.t"
    assert topic.partitions == 3
    assert len(topic.id) == 16


def test_creating_is_idempotent_and_answers_in_the_order_asked(ground: Ground) -> None:
    names = [f"{ground.prefix}.{letter}" for letter in "ba"]
    first = ground.log.create_topics([TopicSpec(name) for name in names])
    again = ground.log.create_topics([TopicSpec(name) for name in [*names, f"{ground.prefix}.c"]])
    assert [topic.name for topic in first] == names
    assert again[:2] == first
    assert len({topic.id for topic in again}) == 3


def test_topics_are_found_by_prefix_literally(ground: Ground) -> None:
    made = ground.log.create_topics([TopicSpec(f"{ground.prefix}.a_b"), TopicSpec(f"{ground.prefix}.axb")])
    found = ground.log.topics(f"{ground.prefix}.a_")
    assert found == {made[0].name: made[0]}
    assert ground.log.topics(f"{ground.prefix}.zz") == {}


def test_a_recreated_topic_has_another_id_and_begins_anew(ground: Ground) -> None:
    name = ground.topic("t")
    old = ground.log.topics(name)[name]
    ground.store(name, [b"1", b"2"])
    ground.log.delete_topic(name)
    ground.until(lambda: name not in ground.log.topics(name), "the topic to be gone")
    (new,) = ground.log.create_topics([TopicSpec(name)])
    assert new.id != old.id
    ground.until(lambda: ground.log.bounds(name, 0) == (0, 0), "an empty topic")


def test_deleting_a_topic_that_does_not_exist_is_no_error(ground: Ground) -> None:
    ground.log.delete_topic(f"{ground.prefix}.never")


def test_a_topic_that_was_missed_is_found_once_it_is_made(ground: Ground) -> None:
    name = f"{ground.prefix}.late"
    ground.log.append(Append(name, 0, [b"k"], [b"early"]))
    (early,) = ground.completions(1)
    assert early.failure is not None
    assert failure(lambda: ground.log.put(name, b"k", b"v")).cause == "not-found"
    assert failure(lambda: ground.log.bounds(name, 0)).cause == "not-found"
    ground.log.create_topics([TopicSpec(name)])
    stored = ground.store(name, [b"in time"])
    assert ground.log.put(name, b"k", b"v") > stored[0]
    ground.log.bounds(name, 0)


def test_appends_go_into_a_topic_that_was_made_again(ground: Ground) -> None:
    name = ground.topic("t")
    ground.store(name, [b"1", b"2"])
    ground.log.delete_topic(name)
    ground.until(lambda: name not in ground.log.topics(name), "the topic to be gone")
    ground.log.append(Append(name, 0, [b"k"], [b"nowhere"]))
    (answer,) = ground.completions(1)
    assert answer.failure is not None
    assert answer.failure.cause == "not-found"
    ground.log.create_topics([TopicSpec(name)])
    ground.store(name, [b"new"])
    assert [value for _, value, _ in ground.read(ground.log.open_reader(name, 0, 0), 1)] == [b"new"]


# -- append


def test_appends_are_stored_in_order_with_rising_offsets(ground: Ground) -> None:
    name = ground.topic("t")
    batches = [Append(name, 0, [b"k%d" % i] * 50, [b"%d.%d" % (i, n) for n in range(50)], i) for i in range(20)]
    for batch in batches:
        ground.log.append(batch)
    offsets: list[int] = []
    owners: list[object] = []
    for answer in ground.completions(1000):
        assert isinstance(answer, Appended)
        assert answer.failure is None
        assert answer.first == (len(offsets) % 50)
        owners += [answer.batch.owner] * len(answer.offsets)
        offsets += answer.offsets
    assert owners == [i for i in range(20) for _ in range(50)]
    assert offsets == sorted(set(offsets))
    read = ground.read(ground.log.open_reader(name, 0, 0), 1000)
    assert [offset for offset, _, _ in read] == offsets
    assert [value for _, value, _ in read] == [value for batch in batches for value in batch.values]
    assert [key for _, _, key in read] == [key for batch in batches for key in batch.keys]


def test_offsets_are_not_dense_where_the_log_skips(ground: Ground) -> None:
    name = ground.topic("t")
    ground.log.claim("s")
    for index in range(30):
        assert ground.transact("s", [Write(name, 0, b"k", b"%d" % index)]).failure is None
    read = ground.read(ground.log.open_reader(name, 0, 0), 30)
    assert [value for _, value, _ in read] == [b"%d" % index for index in range(30)]
    assert (read[-1][0] - read[0][0] == 29) == ground.world.gap_free


def test_partitions_are_apart(ground: Ground) -> None:
    name = ground.topic("t", partitions=2)
    ground.store(name, [b"zero"], 0)
    ground.store(name, [b"one"], 1)
    assert [value for _, value, _ in ground.read(ground.log.open_reader(name, 1, 0), 1)] == [b"one"]
    assert [value for _, value, _ in ground.read(ground.log.open_reader(name, 0, 0), 1)] == [b"zero"]


def test_a_large_batch_and_a_large_record_are_stored(ground: Ground) -> None:
    name = ground.topic("t")
    values = [b"%d" % index for index in range(5000)]
    ground.store(name, values)
    ground.store(name, [b"x" * (RECORD_BYTES_MAX - 1000)])
    read = ground.read(ground.log.open_reader(name, 0, 0), 5001, at_a_time=1000)
    assert [value for _, value, _ in read[:5000]] == values
    assert len(read[5000][1]) == RECORD_BYTES_MAX - 1000


def test_a_record_that_is_too_large_fails_alone(ground: Ground) -> None:
    name = ground.topic("t")
    values = [b"a", b"b", b"x" * (RECORD_BYTES_MAX + 1), b"c"]
    ground.log.append(Append(name, 0, [b"k"] * 4, values))
    told: dict[int, tuple[int, str | None]] = {}
    for answer in ground.completions(4):
        assert isinstance(answer, Appended)
        for index, offset in enumerate(answer.offsets):
            told[answer.first + index] = (offset, answer.failure.cause if answer.failure else None)
    assert list(told) == [0, 1, 2, 3]
    assert told[2] == (-1, "too-large")
    assert [cause for _, cause in told.values()] == [None, None, "too-large", None]
    assert [value for _, value, _ in ground.read(ground.log.open_reader(name, 0, 0), 3)] == [b"a", b"b", b"c"]


def test_an_empty_batch_is_completed_too(ground: Ground) -> None:
    name = ground.topic("t")
    ground.store(name, [b"before"])
    ground.log.append(Append(name, 0, [], [], "empty"))
    answers: list[object] = []

    def answered() -> bool:
        answers.extend(ground.log.poll())
        return bool(answers)

    ground.until(answered, "the completion of nothing")
    (answer,) = answers
    assert isinstance(answer, Appended)
    assert (answer.batch.owner, answer.first, answer.offsets, answer.failure) == ("empty", 0, [], None)


def test_an_append_to_a_topic_that_does_not_exist_is_not_found(ground: Ground) -> None:
    ground.log.append(Append(f"{ground.prefix}.never", 0, [b"k"] * 3, [b"1", b"2", b"3"]))
    answers = ground.completions(3)
    assert {answer.failure.cause for answer in answers if answer.failure} == {"not-found"}
    assert [offset for answer in answers for offset in answer.offsets] == [-1, -1, -1]


def test_an_append_to_a_partition_that_does_not_exist_is_not_found(ground: Ground) -> None:
    name = ground.topic("t")
    ground.store(name, [b"here"])
    ground.log.append(Append(name, 7, [b"k"], [b"nowhere"]))
    (answer,) = ground.completions(1)
    assert answer.failure is not None
    assert answer.failure.cause == "not-found"


def test_append_and_poll_do_not_block(ground: Ground) -> None:
    name = ground.topic("t")
    ground.store(name, [b"warm"])
    batch = Append(name, 0, [b"k"] * 500, [b"v" * 100] * 500)
    started = time.perf_counter()
    for _ in range(20):
        ground.log.append(Append(batch.topic, 0, batch.keys, batch.values))
        ground.log.poll()
    assert time.perf_counter() - started < 2.0


# -- read


def test_a_reader_begins_where_it_is_told_and_says_where_it_is(ground: Ground) -> None:
    name = ground.topic("t")
    offsets = ground.store(name, [b"%d" % index for index in range(300)])
    reader = ground.log.open_reader(name, 0, offsets[150])
    assert reader.position == offsets[150]
    read = ground.read(reader, 150, at_a_time=7)
    assert [offset for offset, _, _ in read] == offsets[150:]
    assert reader.position > offsets[-1]
    reader.close()


def test_a_reader_finds_nothing_at_the_end_and_then_what_is_new(ground: Ground) -> None:
    name = ground.topic("t")
    reader = ground.log.open_reader(name, 0, 0)
    ground.quiet(reader)
    ground.store(name, [b"first"])
    assert [value for _, value, _ in ground.read(reader, 1)] == [b"first"]
    ground.quiet(reader)
    ground.store(name, [b"second"])
    assert [value for _, value, _ in ground.read(reader, 1)] == [b"second"]


def test_a_reader_passes_over_null_values_and_read_range_does_not(ground: Ground) -> None:
    name = ground.topic("t", compacted=True)
    ground.log.put(name, b"a", b"1")
    ground.log.put(name, b"b", None)
    ground.log.put(name, b"c", b"")
    read = ground.read(ground.log.open_reader(name, 0, 0), 2)
    assert [(key, value) for _, value, key in read] == [(b"a", b"1"), (b"c", b"")]
    found = ground.log.read_range(name, 0, 0, 100)
    assert list(zip(found.keys, found.values, strict=True)) == [(b"a", b"1"), (b"b", None), (b"c", b"")]


def test_a_reader_below_the_first_kept_record_fails_with_retention(ground: Ground) -> None:
    name = ground.topic("t")
    offsets = ground.store(name, [b"%d" % index for index in range(20)])
    ground.until(lambda: ground.log.bounds(name, 0)[1] > offsets[-1], "the end to pass the last record")
    ground.log.trim(name, 0, offsets[10])
    assert ground.failure_of(ground.log.open_reader(name, 0, offsets[3])).cause == "retention"
    assert ground.read(ground.log.open_reader(name, 0, offsets[10]), 10)[0][1] == b"10"


def test_a_reader_of_a_topic_that_does_not_exist_fails_with_not_found(ground: Ground) -> None:
    assert ground.failure_of(ground.log.open_reader(f"{ground.prefix}.never", 0, 0)).cause == "not-found"


def test_a_reader_of_a_deleted_topic_fails_with_not_found(ground: Ground) -> None:
    name = ground.topic("t")
    ground.store(name, [b"1"])
    reader = ground.log.open_reader(name, 0, 0)
    ground.read(reader, 1)
    ground.log.delete_topic(name)
    assert ground.failure_of(reader).cause == "not-found"


def test_a_reader_does_not_go_on_in_a_topic_that_was_made_again(ground: Ground) -> None:
    name = ground.topic("t")
    ground.store(name, [b"1"])
    reader = ground.log.open_reader(name, 0, 0)
    ground.read(reader, 1)
    time.sleep(0.2 if ground.world.name == "kafka" else 0.0)  # until the watch has seen the first topic
    ground.log.delete_topic(name)
    ground.until(lambda: name not in ground.log.topics(name), "the topic to be gone")
    ground.log.create_topics([TopicSpec(name)])
    assert ground.failure_of(reader).cause == "not-found"


def test_what_another_process_stores_is_read(ground: Ground) -> None:
    name = ground.topic("t")
    reader = ground.log.open_reader(name, 0, 0)
    ground.quiet(reader, 5)
    other = ground.world.open()
    offset = other.put(name, b"k", b"from afar")
    assert ground.read(reader, 1) == [(offset, b"from afar", b"k")]


# -- ranges and bounds


def test_bounds_begin_at_zero_and_end_past_the_last_record(ground: Ground) -> None:
    name = ground.topic("t")
    assert ground.log.bounds(name, 0) == (0, 0)
    offsets = ground.store(name, [b"1", b"2", b"3"])
    ground.until(lambda: ground.log.bounds(name, 0)[1] > offsets[-1], "the end to pass the last record")
    assert ground.log.bounds(name, 0)[0] == 0


def test_read_range_gives_as_many_as_asked_and_where_to_go_on(ground: Ground) -> None:
    name = ground.topic("t")
    offsets = ground.store(name, [b"%d" % index for index in range(30)])
    ground.until(lambda: ground.log.bounds(name, 0)[1] > offsets[-1], "the end to pass the last record")
    first = ground.log.read_range(name, 0, offsets[5], 10)
    assert first.offsets == offsets[5:15]
    assert first.values == [b"%d" % index for index in range(5, 15)]
    assert first.keys == [b"k"] * 10
    assert offsets[14] < first.next <= offsets[15]
    rest = ground.log.read_range(name, 0, first.next, 1000)
    assert rest.offsets == offsets[15:]
    assert rest.next == ground.log.bounds(name, 0)[1]


def test_read_range_at_the_end_is_empty(ground: Ground) -> None:
    name = ground.topic("t")
    offsets = ground.store(name, [b"1"])
    ground.until(lambda: ground.log.bounds(name, 0)[1] > offsets[-1], "the end to pass the last record")
    end = ground.log.bounds(name, 0)[1]
    found = ground.log.read_range(name, 0, end, 10)
    assert (found.offsets, found.next) == ([], end)


def test_timestamps_are_milliseconds_of_now(ground: Ground) -> None:
    name = ground.topic("t")
    ground.log.put(name, b"k", b"v")
    ground.until(lambda: bool(ground.log.read_range(name, 0, 0, 1).offsets), "the record")
    (stamp,) = ground.log.read_range(name, 0, 0, 1).timestamps_ms
    now = getattr(ground.world, "now_ms", lambda: int(time.time() * 1000))()
    assert abs(now - stamp) < 60_000


def test_trimming_moves_the_first_offset_and_keeps_the_rest(ground: Ground) -> None:
    name = ground.topic("t")
    offsets = ground.store(name, [b"%d" % index for index in range(20)])
    ground.until(lambda: ground.log.bounds(name, 0)[1] > offsets[-1], "the end to pass the last record")
    ground.log.trim(name, 0, offsets[12])
    assert ground.log.bounds(name, 0)[0] == offsets[12]
    assert failure(lambda: ground.log.read_range(name, 0, offsets[11], 5)).cause == "retention"
    assert ground.log.read_range(name, 0, offsets[12], 100).offsets == offsets[12:]


def test_trimming_backwards_changes_nothing_and_trimming_beyond_the_end_trims_all(ground: Ground) -> None:
    name = ground.topic("t")
    offsets = ground.store(name, [b"1", b"2", b"3"])
    ground.until(lambda: ground.log.bounds(name, 0)[1] > offsets[-1], "the end to pass the last record")
    ground.log.trim(name, 0, offsets[2])
    ground.log.trim(name, 0, offsets[1])
    assert ground.log.bounds(name, 0)[0] == offsets[2]
    end = ground.log.bounds(name, 0)[1]
    ground.log.trim(name, 0, end + 1000)
    assert ground.log.bounds(name, 0) == (end, end)
    assert ground.store(name, [b"4"])[0] >= end


@pytest.mark.parametrize("call", ["bounds", "read_range", "put", "trim"])
def test_control_calls_on_a_missing_topic_say_not_found(ground: Ground, call: str) -> None:
    missing = f"{ground.prefix}.never"
    calls: dict[str, Callable[[], object]] = {
        "bounds": lambda: ground.log.bounds(missing, 0),
        "read_range": lambda: ground.log.read_range(missing, 0, 0, 1),
        "put": lambda: ground.log.put(missing, b"k", b"v"),
        "trim": lambda: ground.log.trim(missing, 0, 0),
    }
    assert failure(calls[call]).cause == "not-found"


# -- put


def test_put_returns_the_offset_of_the_record(ground: Ground) -> None:
    name = ground.topic("t", compacted=True)
    offsets = [ground.log.put(name, b"k%d" % index, b"%d" % index) for index in range(3)]
    ground.until(lambda: ground.log.bounds(name, 0)[1] > offsets[-1], "the end to pass the last record")
    assert ground.log.read_range(name, 0, 0, 10).offsets == offsets


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


def test_only_one_of_two_claimants_may_transact(ground: Ground) -> None:
    name = ground.topic("t")
    rival = ground.world.open()
    ground.log.claim("s")
    assert ground.transact("s", [Write(name, 0, b"k", b"holder")]).failure is None
    if ground.world.rivals_are_refused:
        assert failure(lambda: rival.claim("s", 0.1)).cause == "fenced"
        winner, loser = ground.log, rival
    else:
        rival.claim("s")
        winner, loser = rival, ground.log
    assert ground.transact("s", [Write(name, 0, b"k", b"winner")], winner).failure is None
    answer = ground.transact("s", [Write(name, 0, b"k", b"loser")], loser)
    assert answer.failure is not None
    assert answer.failure.cause == "fenced"
    read = ground.read(ground.log.open_reader(name, 0, 0), 2)
    assert [value for _, value, _ in read] == [b"holder", b"winner"]


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


def test_metadata_that_is_too_long_is_refused(ground: Ground) -> None:
    place = (ground.topic("t"), 0)
    assert failure(lambda: ground.log.project(f"{ground.prefix}.g", {place: (1, "m" * 4001)})).cause == "too-large"


# -- closing


def test_close_completes_what_was_appended(ground: Ground) -> None:
    name = ground.topic("t")
    leaver = ground.world.open()
    for index in range(10):
        leaver.append(Append(name, 0, [b"k"] * 10, [b"%d" % index] * 10))
    leaver.close()
    assert len(ground.read(ground.log.open_reader(name, 0, 0), 100)) == 100


def test_closing_twice_is_no_error(ground: Ground) -> None:
    leaver = ground.world.open()
    leaver.close()
    leaver.close()
