"""The contract of the log port: topics, appends, closing.

Each sentence of `native_backend/log/port.py` that promises something is a test, for every driver.
"""

from __future__ import annotations

import time

from native_backend.log.port import Append, Appended, TopicSpec, Write
from tests.kit.realm.worlds import RECORD_BYTES_MAX, OpenLog, failure

# -- topics


def test_a_created_topic_has_an_id_and_its_partitions(opened: OpenLog) -> None:
    (topic,) = opened.log.control.create_topics([TopicSpec(f"{opened.prefix}.t", 3)])
    assert topic.name == f"{opened.prefix}.t"
    assert topic.partitions == 3
    assert len(topic.id) == 16


def test_creating_is_idempotent_and_answers_in_the_order_asked(opened: OpenLog) -> None:
    names = [f"{opened.prefix}.{letter}" for letter in "ba"]
    first = opened.log.control.create_topics([TopicSpec(name) for name in names])
    again = opened.log.control.create_topics([TopicSpec(name) for name in [*names, f"{opened.prefix}.c"]])
    assert [topic.name for topic in first] == names
    assert again[:2] == first
    assert len({topic.id for topic in again}) == 3


def test_topics_are_found_by_prefix_literally(opened: OpenLog) -> None:
    made = opened.log.control.create_topics([TopicSpec(f"{opened.prefix}.a_b"), TopicSpec(f"{opened.prefix}.axb")])
    topics = opened.log.control.topics(f"{opened.prefix}.a_")
    assert topics == {made[0].name: made[0]}
    assert opened.log.control.topics(f"{opened.prefix}.zz") == {}
    names = [*topics, f"{opened.prefix}.zz"]
    assert opened.log.control.find_topics(names) == topics
    assert opened.log.control.find_topics([]) == {}


def test_a_recreated_topic_has_another_id_and_begins_anew(opened: OpenLog) -> None:
    name = opened.topic("t")
    old = opened.log.control.topics(name)[name]
    opened.store(name, [b"1", b"2"])
    opened.log.control.delete_topics([name])
    opened.until(lambda: name not in opened.log.control.topics(name), "the topic to be gone")
    (new,) = opened.log.control.create_topics([TopicSpec(name)])
    assert new.id != old.id
    opened.until(lambda: opened.log.control.bounds(name, 0) == (0, 0), "an empty topic")


def test_deleting_a_topic_that_does_not_exist_is_no_error(opened: OpenLog) -> None:
    opened.log.control.delete_topics([f"{opened.prefix}.never"])


def test_a_topic_that_was_missed_is_found_once_it_is_made(opened: OpenLog) -> None:
    name = f"{opened.prefix}.late"
    opened.log.append(Append(name, 0, [b"k"], [b"early"]))
    (early,) = opened.completions(1)
    assert early.failure is not None
    assert failure(lambda: opened.log.control.put(name, b"k", b"v")).cause == "not-found"
    assert failure(lambda: opened.log.control.bounds(name, 0)).cause == "not-found"
    opened.log.control.create_topics([TopicSpec(name)])
    stored = opened.store(name, [b"in time"])
    assert opened.log.control.put(name, b"k", b"v") > stored[0]
    opened.log.control.bounds(name, 0)


def test_appends_go_into_a_topic_that_was_made_again(opened: OpenLog) -> None:
    name = opened.topic("t")
    opened.store(name, [b"1", b"2"])
    opened.log.control.delete_topics([name])
    opened.until(lambda: name not in opened.log.control.topics(name), "the topic to be gone")
    opened.log.append(Append(name, 0, [b"k"], [b"nowhere"]))
    (answer,) = opened.completions(1)
    assert answer.failure is not None
    assert answer.failure.cause == "not-found"
    opened.log.control.create_topics([TopicSpec(name)])
    opened.store(name, [b"new"])
    assert [value for _, value, _ in opened.read(opened.log.open_reader(name, 0, 0), 1)] == [b"new"]


# -- append


def test_appends_are_stored_in_order_with_rising_offsets(opened: OpenLog) -> None:
    name = opened.topic("t")
    batches = [Append(name, 0, [b"k%d" % i] * 50, [b"%d.%d" % (i, n) for n in range(50)], i) for i in range(20)]
    for batch in batches:
        opened.log.append(batch)
    offsets: list[int] = []
    owners: list[object] = []
    for answer in opened.completions(1000):
        assert isinstance(answer, Appended)
        assert answer.failure is None
        assert answer.first == (len(offsets) % 50)
        owners += [answer.batch.owner] * len(answer.offsets)
        offsets += answer.offsets
    assert owners == [i for i in range(20) for _ in range(50)]
    assert offsets == sorted(set(offsets))
    read = opened.read(opened.log.open_reader(name, 0, 0), 1000)
    assert [offset for offset, _, _ in read] == offsets
    assert [value for _, value, _ in read] == [value for batch in batches for value in batch.values]
    assert [key for _, _, key in read] == [key for batch in batches for key in batch.keys]


def test_offsets_are_not_dense_where_the_log_skips(opened: OpenLog) -> None:
    name = opened.topic("t")
    opened.log.control.claim("s")
    for index in range(30):
        assert opened.transact("s", [Write(name, 0, b"k", b"%d" % index)]).failure is None
    read = opened.read(opened.log.open_reader(name, 0, 0), 30)
    assert [value for _, value, _ in read] == [b"%d" % index for index in range(30)]
    assert (read[-1][0] - read[0][0] == 29) == opened.world.gap_free


def test_partitions_are_apart(opened: OpenLog) -> None:
    name = opened.topic("t", partitions=2)
    opened.store(name, [b"zero"], 0)
    opened.store(name, [b"one"], 1)
    assert [value for _, value, _ in opened.read(opened.log.open_reader(name, 1, 0), 1)] == [b"one"]
    assert [value for _, value, _ in opened.read(opened.log.open_reader(name, 0, 0), 1)] == [b"zero"]


def test_a_large_batch_and_a_large_record_are_stored(opened: OpenLog) -> None:
    name = opened.topic("t")
    values = [b"%d" % index for index in range(5000)]
    opened.store(name, values)
    opened.store(name, [b"x" * (RECORD_BYTES_MAX - 1000)])
    read = opened.read(opened.log.open_reader(name, 0, 0), 5001, at_a_time=1000)
    assert [value for _, value, _ in read[:5000]] == values
    assert len(read[5000][1]) == RECORD_BYTES_MAX - 1000


def test_a_record_that_is_too_large_fails_alone(opened: OpenLog) -> None:
    name = opened.topic("t")
    values = [b"a", b"b", b"x" * (RECORD_BYTES_MAX + 1), b"c"]
    opened.log.append(Append(name, 0, [b"k"] * 4, values))
    outcomes: dict[int, tuple[int, str | None]] = {}
    for answer in opened.completions(4):
        assert isinstance(answer, Appended)
        for index, offset in enumerate(answer.offsets):
            outcomes[answer.first + index] = (offset, answer.failure.cause if answer.failure else None)
    assert list(outcomes) == [0, 1, 2, 3]
    assert outcomes[2] == (-1, "too-large")
    assert [cause for _, cause in outcomes.values()] == [None, None, "too-large", None]
    assert [value for _, value, _ in opened.read(opened.log.open_reader(name, 0, 0), 3)] == [b"a", b"b", b"c"]


def test_an_empty_batch_is_completed_too(opened: OpenLog) -> None:
    name = opened.topic("t")
    opened.store(name, [b"before"])
    opened.log.append(Append(name, 0, [], [], "empty"))
    answers: list[object] = []

    def answered() -> bool:
        answers.extend(opened.log.poll())
        return bool(answers)

    opened.until(answered, "the completion of nothing")
    (answer,) = answers
    assert isinstance(answer, Appended)
    assert (answer.batch.owner, answer.first, answer.offsets, answer.failure) == ("empty", 0, [], None)


def test_an_append_to_a_topic_that_does_not_exist_is_not_found(opened: OpenLog) -> None:
    opened.log.append(Append(f"{opened.prefix}.never", 0, [b"k"] * 3, [b"1", b"2", b"3"]))
    answers = opened.completions(3)
    assert {answer.failure.cause for answer in answers if answer.failure} == {"not-found"}
    assert [offset for answer in answers for offset in answer.offsets] == [-1, -1, -1]


def test_an_append_to_a_partition_that_does_not_exist_is_not_found(opened: OpenLog) -> None:
    name = opened.topic("t")
    opened.store(name, [b"here"])
    opened.log.append(Append(name, 7, [b"k"], [b"nowhere"]))
    (answer,) = opened.completions(1)
    assert answer.failure is not None
    assert answer.failure.cause == "not-found"


def test_append_and_poll_do_not_block(opened: OpenLog) -> None:
    name = opened.topic("t")
    opened.store(name, [b"warm"])
    batch = Append(name, 0, [b"k"] * 500, [b"v" * 100] * 500)
    started = time.perf_counter()
    for _ in range(20):
        opened.log.append(Append(batch.topic, 0, batch.keys, batch.values))
        opened.log.poll()
    assert time.perf_counter() - started < 30  # a call that waits for the broker's deadline takes minutes


# -- closing


def test_close_completes_what_was_appended(opened: OpenLog) -> None:
    name = opened.topic("t")
    leaver = opened.world.open()
    for index in range(10):
        leaver.append(Append(name, 0, [b"k"] * 10, [b"%d" % index] * 10))
    leaver.close()
    assert len(opened.read(opened.log.open_reader(name, 0, 0), 100)) == 100


def test_closing_twice_is_no_error(opened: OpenLog) -> None:
    leaver = opened.world.open()
    leaver.close()
    leaver.close()
