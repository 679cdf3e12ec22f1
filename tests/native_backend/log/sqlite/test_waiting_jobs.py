"""The turns of what waits for the writer: nothing waits behind the backlog of another partition."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from native_backend.log.open import open_embedded
from native_backend.log.port import Append, Appended, Completion, TopicSpec, Write
from native_backend.log.sqlite.plan import Job, Transaction
from native_backend.log.sqlite.schema import begin, connect
from native_backend.log.sqlite.waiting_jobs import GROUP_BYTES, GROUP_RECORDS, SHARED_BYTES, WaitingJobs
from tests.kit.patience import HANG_S, until

BODY = bytes(100_000)


def append(topic: str, number: int, value: bytes = BODY, aside: bool = False, records: int = 1) -> Append:
    return Append(topic, 0, [b"k"] * records, [value] * records, number, aside=aside)


def waiting(jobs: Sequence[Job]) -> WaitingJobs:
    all_of_them = WaitingJobs()
    for job in jobs:
        all_of_them.add(job)
    return all_of_them


def taken(jobs: WaitingJobs) -> list[list[Job]]:
    takes = []
    while jobs:
        takes.append(jobs.take())
    return takes


def octets(jobs: Sequence[Job]) -> int:
    return sum(sum(map(len, job.values)) for job in jobs if isinstance(job, Append))


def test_a_job_is_in_the_next_transaction_whatever_waits_for_others() -> None:
    jobs = waiting([append("flooded", number) for number in range(1_000)])
    jobs.take()
    late = append("quiet", 0, b"small")
    jobs.add(late)
    assert late in jobs.take()


def test_each_partition_is_served_by_its_own() -> None:
    flooded = [Append("t", 0, [b"k"], [BODY], number) for number in range(1_000)]
    late = Append("t", 1, [b"k"], [b"small"])
    jobs = waiting([*flooded, late])
    assert late in jobs.take()


def test_transactions_take_turns_with_what_is_appended() -> None:
    late = Transaction([Write("journal", 0, b"k", b"v")], None)
    jobs = waiting([*(append("flooded", number) for number in range(1_000)), late])
    assert late in jobs.take()


@pytest.mark.parametrize("seed", range(20))
def test_all_comes_once_and_in_the_order_of_its_partition(seed: int) -> None:
    random = Random(seed)
    jobs: list[Job] = [
        Transaction([Write("journal", 0, b"k", b"v")], number)
        if random.random() < 0.2
        else append(random.choice("abc"), number, BODY[: random.randrange(len(BODY))], random.random() < 0.1)
        for number in range(300)
    ]
    for_writer, takes = WaitingJobs(), []
    for job in jobs:
        for_writer.add(job)
        if random.random() < 0.1:
            takes.append(for_writer.take())
    takes += taken(for_writer)
    given = [job for take in takes for job in take]
    for place in ("a", "b", "c", ""):
        owners = [job.owner for job in given if (job.topic if isinstance(job, Append) else "") == place]
        assert owners == [job.owner for job in jobs if (job.topic if isinstance(job, Append) else "") == place]


def test_one_alone_has_long_transactions_and_several_have_short_ones() -> None:
    alone = taken(waiting([append("a", number) for number in range(400)]))
    assert all(GROUP_BYTES <= octets(take) < GROUP_BYTES + len(BODY) for take in alone[:-1])
    shared = taken(waiting([append(topic, number) for number in range(200) for topic in ("a", "b")]))
    assert all(SHARED_BYTES <= octets(take) < SHARED_BYTES + len(BODY) for take in shared[:-1])


def test_one_that_is_alone_for_a_moment_has_short_ones() -> None:
    jobs = waiting([append("a", number) for number in range(400)])
    for number in range(5):
        jobs.add(append("b", number, b"small"))
        assert octets(jobs.take()) < SHARED_BYTES + len(BODY)
        assert octets(jobs.take()) < SHARED_BYTES + len(BODY), "b comes again"
    assert octets(jobs.take()) >= GROUP_BYTES


def test_what_no_caller_waits_for_shortens_nothing() -> None:
    jobs = waiting([*(append("a", number) for number in range(200)), append("outcomes", 0, b"small", aside=True)])
    assert octets(jobs.take()) >= GROUP_BYTES


def test_records_end_a_transaction_too() -> None:
    jobs = waiting([append("a", number, b"v", records=GROUP_RECORDS // 2) for number in range(4)])
    assert [len(take) for take in taken(jobs)] == [2, 2]


def test_what_waits_in_one_partition_holds_no_other_up(tmp_path: Path) -> None:
    """The writer itself: 40 MB wait in one partition while the file is locked, then one record comes for another."""
    with closing(open_embedded(tmp_path)) as log, closing(connect(tmp_path)) as another:
        log.control.create_topics([TopicSpec("flooded"), TopicSpec("quiet")])
        begin(another, time.monotonic() + HANG_S)
        for number in range(400):
            log.append(append("flooded", number))
        log.append(append("quiet", 0, b"small"))
        another.execute("ROLLBACK")
        answers: list[Completion] = []

        def all_are_answered() -> bool:
            answers.extend(log.poll())
            return len(answers) == 401

        until(all_are_answered, "the answers")
        topics = [answer.batch.topic for answer in answers if isinstance(answer, Appended) and not answer.failure]
        assert len(topics) == 401
        before = topics.index("quiet") * len(BODY)
        assert before <= GROUP_BYTES + len(BODY) + SHARED_BYTES, "the transaction under way, and its own"
