"""What the SQLite driver promises beyond the port: kill -9, several processes on one file, snapshots, a full disk."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from native_backend.log.open import open_embedded, wall_ms
from native_backend.log.port import Append, Appended, Log, LogError, TopicSpec, Write
from native_backend.log.sqlite import columns
from native_backend.log.sqlite.commit import Committer
from native_backend.log.sqlite.plan import Job, Transaction
from native_backend.log.sqlite.reader import READ_BYTES
from native_backend.log.sqlite.schema import FILE, connect
from tests.kit.patience import HANG_S
from tests.kit.realm import sqlite_snapshot as snapshot

WRITER = """
import sys, time
from pathlib import Path
from native_backend.log.port import Append, TopicSpec
from native_backend.log.open import open_embedded
log = open_embedded(Path(sys.argv[1]))
log.control.create_topics([TopicSpec("t")])
sent = told = 0
while True:
    while sent - told < 2000:
        log.append(Append("t", 0, [b"k"] * 100, [b"%d" % n for n in range(sent, sent + 100)], sent))
        sent += 100
    for answer in log.poll():
        assert answer.failure is None
        told += len(answer.offsets)
        print(told, answer.offsets[-1], flush=True)
    time.sleep(0.001)
"""
HOLDER = """
import sys, time
from pathlib import Path
from native_backend.log.port import TopicSpec, Write
from native_backend.log.open import open_embedded
log = open_embedded(Path(sys.argv[1]))
log.control.create_topics([TopicSpec("t")])
log.control.claim("journal")
for _ in range(2):
    log.transact("journal", [Write("t", 0, b"k", b"holder")], None)
    while not (answers := log.poll()):
        time.sleep(0.001)
    print(answers[0].failure.cause if answers[0].failure else "stored", flush=True)
    sys.stdin.readline()
"""
PUTTER = """
import sys, time
from pathlib import Path
from native_backend.log.port import TopicSpec
from native_backend.log.open import open_embedded
log = open_embedded(Path(sys.argv[1]))
slowest = 0.0
for number in range(10):
    started = time.monotonic()
    log.control.create_topics([TopicSpec("made.%d" % number)])
    log.control.put("meta", b"%d" % number, b"v")
    slowest = max(slowest, time.monotonic() - started)
print(slowest)
"""


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    log = open_embedded(tmp_path)
    yield log
    log.close()


def start(script: str, directory: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", script, str(directory)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def completed(log: Log, count: int) -> list[Appended]:
    answers: list[Appended] = []
    deadline = time.monotonic() + HANG_S
    while sum(len(answer.offsets) for answer in answers) < count:
        answers += [answer for answer in log.poll() if isinstance(answer, Appended)]
        assert time.monotonic() < deadline
        time.sleep(0.001)
    return answers


def test_what_was_completed_survives_kill_9_of_the_writer(tmp_path: Path) -> None:
    process = start(WRITER, tmp_path)
    assert process.stdout is not None
    count = last_offset = 0
    for line in process.stdout:
        count, last_offset = map(int, line.split())
        if count >= 20_000:
            process.send_signal(signal.SIGKILL)
            break
    for line in process.stdout:  # what it had said before it died
        if line.endswith("\n"):
            count, last_offset = map(int, line.split())
    process.communicate()

    log = open_embedded(tmp_path)
    start_at, entries = 0, []
    while (records := log.control.read_range("t", 0, start_at, 10_000)).offsets:
        entries += list(zip(records.offsets, records.values, strict=True))
        start_at = records.next
    log.close()
    assert len(entries) >= count >= 20_000
    assert entries[count - 1][0] == last_offset
    assert [value for _, value in entries] == [b"%d" % number for number in range(len(entries))]


def test_a_claim_of_another_process_is_fenced_by_ours(log: Log, tmp_path: Path) -> None:
    holder = start(HOLDER, tmp_path)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "stored\n"
    log.control.claim("journal")
    output, _ = holder.communicate("now\n", timeout=HANG_S)
    assert output == "fenced\n"
    assert log.control.read_range("t", 0, 0, 10).values == [b"holder"]


def test_another_process_writes_beside_a_saturated_writer(log: Log, tmp_path: Path) -> None:
    log.control.create_topics([TopicSpec("t"), TopicSpec("meta", compacted=True)])
    reader = log.open_reader("meta", 0, 0)
    assert reader.read(10) is None
    other = start(PUTTER, tmp_path)
    batch = Append("t", 0, [b"k"] * 500, [b"v" * 100] * 500)
    in_flight = 0
    seen: list[bytes | None] = []
    while other.poll() is None or in_flight:
        while other.poll() is None and in_flight < 20_000:
            log.append(Append("t", 0, batch.keys, batch.values))
            in_flight += 500
        in_flight -= sum(len(answer.offsets) for answer in log.poll() if isinstance(answer, Appended))
        time.sleep(0.0005)
    while (taken := reader.read(10)) is not None:
        assert isinstance(taken, tuple)
        seen += taken[2]
    slowest, _ = other.communicate()
    assert other.returncode == 0
    assert seen == [b"%d" % number for number in range(10)]
    assert len(log.control.topics("made.")) == 10
    assert float(slowest) < 1.0


def test_a_write_of_another_process_is_seen_at_the_next_read(log: Log, tmp_path: Path) -> None:
    log.control.create_topics([TopicSpec("t")])
    reader = log.open_reader("t", 0, 0)
    assert reader.read(10) is None
    other = open_embedded(tmp_path)
    offset = other.control.put("t", b"k", b"v")
    assert reader.read(10) == ([offset], [b"v"], [b"k"])
    other.close()


def test_wake_is_called_when_something_has_completed(log: Log) -> None:
    log.control.create_topics([TopicSpec("t")])
    woken: list[int] = []
    log.on_ready(lambda: woken.append(1))
    log.append(Append("t", 0, [b"k"], [b"v"]))
    deadline = time.monotonic() + HANG_S
    while not woken:
        assert time.monotonic() < deadline
        time.sleep(0.001)
    assert len(log.poll()) == 1


def unreadable(topic: str, number: int, first: int, end: int) -> None:
    raise AssertionError(f"{topic}/{number} cannot be read from {first} to {end}")


def test_a_snapshot_tells_every_kept_record_and_who_the_topics_are(log: Log, tmp_path: Path) -> None:
    made = log.control.create_topics([TopicSpec("um.node.a"), TopicSpec("um.node.b", 2), TopicSpec("other")])
    log.append(Append("um.node.a", 0, [b"k"] * 5, [b"%d" % n for n in range(5)]))
    log.append(Append("um.node.b", 1, [b"k"], [b"b"]))
    log.append(Append("other", 0, [b"k"], [b"no"]))
    offsets = completed(log, 7)[0].offsets
    log.control.trim("um.node.a", 0, offsets[2])
    log.control.put("um.node.b", b"gone", None)
    log.control.project("group", {("um.node.a", 0): (offsets[3], "realmgate1;7;0")})

    with snapshot.opened(tmp_path) as seen:
        rows = [row for topic in ("um.node.a", "um.node.b") for row in seen.rows(topic, unreadable)]
        assert seen.topic_ids() == {topic.name: topic.id for topic in made}
        assert seen.ends()["um.node.a", 0] == log.control.bounds("um.node.a", 0)
        assert seen.group_positions() == [("group", "um.node.a", 0, offsets[3], "realmgate1;7;0")]
    assert [(topic, number, value) for topic, number, _, _, _, value in rows] == [
        ("um.node.a", 0, b"2"),
        ("um.node.a", 0, b"3"),
        ("um.node.a", 0, b"4"),
        ("um.node.b", 0, None),
        ("um.node.b", 1, b"b"),
    ]
    assert [offset for _, _, offset, _, _, _ in rows[:3]] == offsets[2:]
    assert all(abs(wall_ms() - at_ms) < 60_000 for _, _, _, at_ms, _, _ in rows)


def test_a_snapshot_is_one_moment_beside_a_live_writer(log: Log, tmp_path: Path) -> None:
    log.control.create_topics([TopicSpec("t")])
    for number in range(3):
        log.control.put("t", b"k", b"%d" % number)
    with snapshot.opened(tmp_path) as seen:
        rows = seen.rows("t", unreadable)
        first, ends = next(rows), seen.ends()
        log.control.put("t", b"k", b"later")
        assert [row[5] for row in [first, *rows]] == [b"0", b"1", b"2"]
        assert seen.ends() == ends, "all that is asked of one snapshot is of one moment"


def test_a_batch_that_cannot_be_decoded_is_named_and_the_others_are_given(log: Log, tmp_path: Path) -> None:
    log.control.create_topics([TopicSpec("t")])
    offsets = [log.control.put("t", b"k", b"%d" % number) for number in range(3)]
    with closing(connect(tmp_path)) as connection, connection:
        connection.execute("UPDATE batches SET data = x'00' WHERE first = ?", (offsets[1],))
    torn: list[tuple[str, int, int, int]] = []
    with snapshot.opened(tmp_path) as seen:
        kept = [row[5] for row in seen.rows("t", lambda *batch: torn.append(batch))]
    assert (kept, torn) == ([b"0", b"2"], [("t", 0, offsets[1], offsets[1] + 1)])


def test_a_snapshot_of_no_realm_makes_none(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no realm"), snapshot.opened(tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_has_no_room_for_events_and_transactions_and_lets_evidence_wait(log: Log, tmp_path: Path) -> None:
    log.control.create_topics([TopicSpec("t")])
    committer = Committer(tmp_path, 1 << 20, wall_ms)
    (pages,) = committer.connection.execute("PRAGMA page_count").fetchone()
    committer.connection.execute(f"PRAGMA max_page_count = {pages}")
    value = b"x" * 100_000
    jobs: list[Job] = [
        Append("t", 0, [b"k"], [value]),
        Append("t", 0, [b"k"], [value], aside=True),
        Transaction([Write("t", 0, b"k", value)], None),
    ]
    answers = committer.commit(jobs, time.monotonic() + 1.0)
    failures = [(answer.failure.cause, answer.failure.code, answer.offsets) for answer in answers if answer.failure]
    causes = ("capacity-reached", "unavailable", "capacity-reached")
    assert failures == [(cause, "SQLITE_FULL", [-1]) for cause in causes]
    del jobs[1:]
    committer.connection.execute("PRAGMA max_page_count = 1073741823")
    (answer,) = committer.commit(jobs, time.monotonic() + HANG_S)
    assert answer.failure is None
    assert log.control.read_range("t", 0, 0, 10).offsets == answer.offsets
    committer.close()


def test_a_lock_that_is_never_let_go_is_unavailable_at_the_deadline(log: Log, tmp_path: Path) -> None:
    log.control.create_topics([TopicSpec("t")])
    hog = sqlite3.connect(tmp_path / FILE, isolation_level=None)
    hog.execute("BEGIN IMMEDIATE")
    started = time.monotonic()
    with pytest.raises(LogError) as raised:
        log.control.put("t", b"k", b"v", deadline_s=0.1)
    assert raised.value.failure.cause == "unavailable"
    assert time.monotonic() - started < 60
    hog.execute("ROLLBACK")
    hog.close()
    log.control.put("t", b"k", b"v")


def test_a_file_of_another_format_is_refused(tmp_path: Path) -> None:
    open_embedded(tmp_path).close()
    connection = sqlite3.connect(tmp_path / FILE)
    connection.execute("PRAGMA user_version = 9")
    connection.close()
    with pytest.raises(LogError, match="has format 9; this release knows up to 3"):
        open_embedded(tmp_path)


def test_a_file_of_the_format_before_is_read_and_brought_up(tmp_path: Path) -> None:
    log = open_embedded(tmp_path)
    log.control.create_topics([TopicSpec("t")])
    log.control.put("t", b"k", b"v")
    log.close()
    connection = sqlite3.connect(tmp_path / FILE)
    connection.executescript("DROP TABLE claims; PRAGMA user_version = 1")  # as format 1 was
    connection.close()
    log = open_embedded(tmp_path)
    log.control.claim("s")
    log.transact("s", [Write("t", 0, b"k", b"w")], None)
    deadline = time.monotonic() + HANG_S
    while not (answers := log.poll()):
        assert time.monotonic() < deadline
    assert answers[0].failure is None
    assert log.control.read_range("t", 0, 0, 10).values == [b"v", b"w"]
    log.close()


def test_the_end_is_the_same_for_every_process_and_one_offset_past_the_last_record_is_skipped(
    log: Log, tmp_path: Path
) -> None:
    log.control.create_topics([TopicSpec("t")])
    log.append(Append("t", 0, [b"k"] * 6, [b"v"] * 6))
    offsets = completed(log, 6)[0].offsets
    assert log.control.bounds("t", 0) == (0, offsets[-1] + 2)
    log.append(Append("t", 0, [b"k"], [b"next"]))
    (after,) = completed(log, 1)[0].offsets
    other = open_embedded(tmp_path)
    assert (after, other.control.put("t", b"k", b"v")) == (offsets[-1] + 2, after + 2)
    other.close()


def test_older_records_of_a_key_are_gone_at_once(log: Log) -> None:
    log.control.create_topics([TopicSpec("t", compacted=True)])
    offsets = [log.control.put("t", b"k%d" % (number % 2), b"%d" % number) for number in range(6)]
    records = log.control.read_range("t", 0, 0, 10)
    assert (records.offsets, records.values) == (offsets[-2:], [b"4", b"5"])


def test_what_another_process_writes_between_planning_and_the_lock_is_not_written_over(
    log: Log, tmp_path: Path
) -> None:
    """Nor does one who writes there each time hold it up."""
    log.control.create_topics([TopicSpec("t")])
    theirs: list[int] = []

    def now_ms() -> int:  # asked for when the plan is made
        if not committer.connection.in_transaction:
            theirs.append(log.control.put("t", b"k", b"theirs"))
        return wall_ms()

    committer = Committer(tmp_path, 1 << 20, now_ms)
    (answer,) = committer.commit([Append("t", 0, [b"k"], [b"ours"])], time.monotonic() + HANG_S)
    committer.close()
    records = log.control.read_range("t", 0, 0, 10)
    assert records.values == [b"theirs", b"ours"]
    assert records.offsets == [*theirs, *answer.offsets]


def test_offsets_skip_within_a_long_batch(log: Log) -> None:
    log.control.create_topics([TopicSpec("t")])
    log.append(Append("t", 0, [b"k"] * 3000, [b"v"] * 3000))
    (answer,) = completed(log, 3000)
    assert answer.offsets == sorted(set(answer.offsets))
    assert answer.offsets[-1] - answer.offsets[0] > 2999


@pytest.mark.parametrize("large", [b"x" * (READ_BYTES + 1), None])
def test_a_reader_goes_on_behind_what_is_larger_than_one_read(log: Log, large: bytes | None) -> None:
    """From the offset that was skipped there, and from the start when all of it are tombstones."""
    log.control.create_topics([TopicSpec("t")])
    before = log.control.put("t", b"k" * (READ_BYTES + 1), large)
    after = log.control.put("t", b"l", b"small")
    assert after > before + 1
    reader = log.open_reader("t", 0, before + 1 if large else before)
    assert reader.read(10) == ([after], [b"small"], [b"l"])


def test_transactions_and_appends_to_one_partition_share_its_offsets(log: Log) -> None:
    log.control.create_topics([TopicSpec("t")])
    log.control.claim("s")
    for number in range(20):
        log.append(Append("t", 0, [b"k"], [b"a%d" % number]))
        log.transact("s", [Write("t", 0, b"k", b"t%d" % number)], number)
    deadline = time.monotonic() + HANG_S
    count = 0
    while count < 40:
        count += len(log.poll())
        assert time.monotonic() < deadline
        time.sleep(0.001)
    values = log.control.read_range("t", 0, 0, 100).values
    assert values == [item for number in range(20) for item in (b"a%d" % number, b"t%d" % number)]


def test_the_embedded_realm_needs_no_kafka_client(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from native_backend.log.open import open_embedded;"
        "open_embedded(Path(sys.argv[1])).close();"
        "assert not {'confluent_kafka', 'kafka'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True)


@given(st.lists(st.tuples(st.none() | st.binary(max_size=20), st.none() | st.binary(max_size=300)), max_size=50))
def test_columns_come_back_as_they_went(records: list[tuple[bytes | None, bytes | None]]) -> None:
    keys, values = [key for key, _ in records], [value for _, value in records]
    assert columns.decode(columns.encode(keys, values), len(records)) == (keys, values)
