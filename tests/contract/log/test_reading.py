"""The contract of the log port: readers, ranges, bounds, trimming.

Each sentence of `native_backend/log/port.py` that promises something is a test, for every driver.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from native_backend.log.port import TopicSpec, Write
from tests.kit.realm.worlds import OpenLog, failure

# -- read


def test_a_reader_begins_where_it_is_opened_and_has_a_position(opened: OpenLog) -> None:
    name = opened.topic("t")
    offsets = opened.store(name, [b"%d" % index for index in range(300)])
    reader = opened.log.open_reader(name, 0, offsets[150])
    assert reader.position == offsets[150]
    read = opened.read(reader, 150, at_a_time=7)
    assert [offset for offset, _, _ in read] == offsets[150:]
    assert reader.position > offsets[-1]
    reader.close()


def test_a_reader_finds_nothing_at_the_end_and_then_what_is_new(opened: OpenLog) -> None:
    name = opened.topic("t")
    reader = opened.log.open_reader(name, 0, 0)
    opened.quiet(reader)
    opened.store(name, [b"first"])
    assert [value for _, value, _ in opened.read(reader, 1)] == [b"first"]
    opened.quiet(reader)
    opened.store(name, [b"second"])
    assert [value for _, value, _ in opened.read(reader, 1)] == [b"second"]


def test_a_reader_passes_over_null_values_and_read_range_does_not(opened: OpenLog) -> None:
    name = opened.topic("t", compacted=True)
    opened.log.control.put(name, b"a", b"1")
    opened.log.control.put(name, b"b", None)
    opened.log.control.put(name, b"c", b"")
    read = opened.read(opened.log.open_reader(name, 0, 0), 2)
    assert [(key, value) for _, value, key in read] == [(b"a", b"1"), (b"c", b"")]
    records = opened.log.control.read_range(name, 0, 0, 100)
    assert list(zip(records.keys, records.values, strict=True)) == [(b"a", b"1"), (b"b", None), (b"c", b"")]


def test_a_reader_below_the_first_kept_record_fails_with_retention(opened: OpenLog) -> None:
    name = opened.topic("t")
    offsets = opened.store(name, [b"%d" % index for index in range(20)])
    opened.until(lambda: opened.log.control.bounds(name, 0)[1] > offsets[-1], "the end to pass the last record")
    opened.log.control.trim(name, 0, offsets[10])
    assert opened.failure_of(opened.log.open_reader(name, 0, offsets[3])).cause == "retention"
    assert opened.read(opened.log.open_reader(name, 0, offsets[10]), 10)[0][1] == b"10"


def test_a_reader_of_a_topic_that_does_not_exist_fails_with_not_found(opened: OpenLog) -> None:
    assert opened.failure_of(opened.log.open_reader(f"{opened.prefix}.never", 0, 0)).cause == "not-found"


def test_a_reader_of_a_deleted_topic_fails_with_not_found(opened: OpenLog) -> None:
    name = opened.topic("t")
    opened.store(name, [b"1"])
    reader = opened.log.open_reader(name, 0, 0)
    opened.read(reader, 1)
    opened.log.control.delete_topics([name])
    assert opened.failure_of(reader).cause == "not-found"


def test_a_reader_does_not_go_on_in_a_topic_that_was_made_again(opened: OpenLog) -> None:
    name = opened.topic("t")
    opened.store(name, [b"1"])
    reader = opened.log.open_reader(name, 0, 0)
    opened.read(reader, 1)
    time.sleep(0.2 if opened.world.name == "kafka" else 0.0)  # until the watch has seen the first topic
    opened.log.control.delete_topics([name])
    opened.until(lambda: name not in opened.log.control.topics(name), "the topic to be gone")
    opened.log.control.create_topics([TopicSpec(name)])
    assert opened.failure_of(reader).cause == "not-found"


def test_what_another_process_stores_is_read(opened: OpenLog) -> None:
    name = opened.topic("t")
    reader = opened.log.open_reader(name, 0, 0)
    opened.quiet(reader, 5)
    other = opened.world.open()
    offset = other.control.put(name, b"k", b"from afar")
    assert opened.read(reader, 1) == [(offset, b"from afar", b"k")]


# -- ranges and bounds


def test_bounds_begin_at_zero_and_end_past_the_last_record(opened: OpenLog) -> None:
    name = opened.topic("t")
    assert opened.log.control.bounds(name, 0) == (0, 0)
    offsets = opened.store(name, [b"1", b"2", b"3"])
    opened.until(lambda: opened.log.control.bounds(name, 0)[1] > offsets[-1], "the end to pass the last record")
    assert opened.log.control.bounds(name, 0)[0] == 0


def test_whether_a_stretch_holds_only_what_its_caller_stored(opened: OpenLog) -> None:
    name, log = opened.topic("t"), opened.log
    offsets = opened.store(name, [b"%d" % index for index in range(7)])
    log.control.claim("s")
    last = opened.transact("s", [Write(name, 0, b"k", b"8"), Write(name, 0, b"k", b"9")]).offsets[-1]
    opened.until(lambda: log.control.bounds(name, 0)[1] > last, "the end to pass the last record")
    end = log.control.bounds(name, 0)[1]
    assert log.control.holds_only(name, 0, 0, end, 9, 1)
    assert log.control.holds_only(name, 0, offsets[2], end, 7, 1)
    assert not log.control.holds_only(name, 0, 0, end, 8, 1)
    assert not log.control.holds_only(name, 0, offsets[2], end, 6, 1)
    opened.world.open().control.put(name, b"k", b"from afar")
    opened.until(lambda: log.control.bounds(name, 0)[1] > end, "the end to pass the last record")
    later = log.control.bounds(name, 0)[1]
    assert log.control.holds_only(name, 0, end, later, 1, 0)
    assert not log.control.holds_only(name, 0, 0, later, 9, 1)


def test_read_range_gives_as_many_as_asked_and_where_to_go_on(opened: OpenLog) -> None:
    name = opened.topic("t")
    offsets = opened.store(name, [b"%d" % index for index in range(30)])
    opened.until(lambda: opened.log.control.bounds(name, 0)[1] > offsets[-1], "the end to pass the last record")
    first = opened.log.control.read_range(name, 0, offsets[5], 10)
    assert first.offsets == offsets[5:15]
    assert first.values == [b"%d" % index for index in range(5, 15)]
    assert first.keys == [b"k"] * 10
    assert offsets[14] < first.next <= offsets[15]
    rest = opened.log.control.read_range(name, 0, first.next, 1000)
    assert rest.offsets == offsets[15:]
    assert rest.next == opened.log.control.bounds(name, 0)[1]


def test_read_range_at_the_end_is_empty(opened: OpenLog) -> None:
    name = opened.topic("t")
    offsets = opened.store(name, [b"1"])
    opened.until(lambda: opened.log.control.bounds(name, 0)[1] > offsets[-1], "the end to pass the last record")
    end = opened.log.control.bounds(name, 0)[1]
    records = opened.log.control.read_range(name, 0, end, 10)
    assert (records.offsets, records.next) == ([], end)


def test_timestamps_are_milliseconds_of_now(opened: OpenLog) -> None:
    name = opened.topic("t")
    opened.log.control.put(name, b"k", b"v")
    opened.until(lambda: bool(opened.log.control.read_range(name, 0, 0, 1).offsets), "the record")
    (stamp,) = opened.log.control.read_range(name, 0, 0, 1).timestamps_ms
    now = getattr(opened.world, "now_ms", lambda: int(time.time() * 1000))()
    assert abs(now - stamp) < 60_000


def test_trimming_moves_the_first_offset_and_keeps_the_rest(opened: OpenLog) -> None:
    name = opened.topic("t")
    offsets = opened.store(name, [b"%d" % index for index in range(20)])
    opened.until(lambda: opened.log.control.bounds(name, 0)[1] > offsets[-1], "the end to pass the last record")
    opened.log.control.trim(name, 0, offsets[12])
    assert opened.log.control.bounds(name, 0)[0] == offsets[12]
    assert failure(lambda: opened.log.control.read_range(name, 0, offsets[11], 5)).cause == "retention"
    assert opened.log.control.read_range(name, 0, offsets[12], 100).offsets == offsets[12:]


def test_trimming_backwards_changes_nothing_and_trimming_beyond_the_end_trims_all(opened: OpenLog) -> None:
    name = opened.topic("t")
    offsets = opened.store(name, [b"1", b"2", b"3"])
    opened.until(lambda: opened.log.control.bounds(name, 0)[1] > offsets[-1], "the end to pass the last record")
    opened.log.control.trim(name, 0, offsets[2])
    opened.log.control.trim(name, 0, offsets[1])
    assert opened.log.control.bounds(name, 0)[0] == offsets[2]
    end = opened.log.control.bounds(name, 0)[1]
    opened.log.control.trim(name, 0, end + 1000)
    assert opened.log.control.bounds(name, 0) == (end, end)
    assert opened.store(name, [b"4"])[0] >= end


@pytest.mark.parametrize("call", ["bounds", "read_range", "put", "trim"])
def test_control_calls_on_a_missing_topic_say_not_found(opened: OpenLog, call: str) -> None:
    missing = f"{opened.prefix}.never"
    calls: dict[str, Callable[[], object]] = {
        "bounds": lambda: opened.log.control.bounds(missing, 0),
        "read_range": lambda: opened.log.control.read_range(missing, 0, 0, 1),
        "put": lambda: opened.log.control.put(missing, b"k", b"v"),
        "trim": lambda: opened.log.control.trim(missing, 0, 0),
    }
    assert failure(calls[call]).cause == "not-found"
