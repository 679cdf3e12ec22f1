"""The contract of the log port: readers, ranges, bounds, trimming.

Each sentence of `native_backend/log.py` that promises something is a test, for every driver.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from native_backend.log import TopicSpec
from tests.native_backend.logs.worlds import Ground, failure

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
    ground.log.delete_topics([name])
    assert ground.failure_of(reader).cause == "not-found"


def test_a_reader_does_not_go_on_in_a_topic_that_was_made_again(ground: Ground) -> None:
    name = ground.topic("t")
    ground.store(name, [b"1"])
    reader = ground.log.open_reader(name, 0, 0)
    ground.read(reader, 1)
    time.sleep(0.2 if ground.world.name == "kafka" else 0.0)  # until the watch has seen the first topic
    ground.log.delete_topics([name])
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
