"""The broker is killed while it is written to: nothing acknowledged is lost, nothing is there twice, order is kept."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from native_backend.log.open import open_kafka
from native_backend.log.port import Append, Appended, Log, LogError, TopicSpec, Transacted, Write
from tests.kit.patience import HANG_S
from tests.kit.processes.broker import Broker, start_broker

pytestmark = [
    pytest.mark.filterwarnings("ignore:(read|open)_text is deprecated:DeprecationWarning"),
]
BATCH = 100
SHARD = "kill/journal"
KILLS, COMMITS = 12, 5


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    broker = start_broker(tmp_path / "kafka")
    yield broker
    broker.stop()


class Load:
    """Appends numbered records, at most 5,000 in flight, and transactions beside them; remembers what was told."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.sent = 0
        self.told: list[tuple[int, int]] = []  # number, offset
        self.transactions = 0
        self.kept: list[int] = []
        self.doubtful: list[int] = []
        self.is_transacting = False
        self.is_claimed = True

    def turn(self, more: bool) -> None:
        while more and self.sent - len(self.told) < 5000:
            values = [b"%d" % number for number in range(self.sent, self.sent + BATCH)]
            self.log.append(Append("events", 0, [b"k"] * BATCH, values, self.sent))
            self.sent += BATCH
        if more and self.is_claimed and not self.is_transacting:
            self.transact()
        for answer in self.log.poll():
            self.note(answer)
        time.sleep(0.001)

    def transact(self) -> int:
        """The number of the transaction that begins."""
        number, self.transactions = self.transactions, self.transactions + 1
        self.is_transacting = True
        self.log.transact(SHARD, [Write("journal", 0, b"k", b"%d" % number)], number)
        return number

    def note(self, answer: Appended | Transacted) -> None:
        if isinstance(answer, Appended):
            assert answer.failure is None, answer.failure
            start = answer.batch.owner + answer.first
            self.told += zip(range(start, start + len(answer.offsets)), answer.offsets, strict=True)
            return
        self.is_transacting = False
        if answer.failure is None:
            self.kept.append(answer.owner)
        else:
            self.is_claimed = False
            if answer.failure.cause == "indeterminate":
                self.doubtful.append(answer.owner)
            else:
                assert answer.failure.cause == "unavailable", answer.failure


PROJECTING = """
import sys, threading
from native_backend.log.port import LogError
from native_backend.log.open import open_kafka
log = open_kafka(sys.argv[1], {})
over = threading.Event()
def project(group, deadline_s):
    offset = 0
    while not over.is_set():
        offset += 1
        try:
            log.control.project(group, {("events", 0): (offset, "")}, deadline_s)
        except LogError:
            pass
for at in range(12):
    threading.Thread(target=project, args=(f"kill.{at}", 1.0 + at % 3), daemon=True).start()
print("projecting", flush=True)
sys.stdin.readline()
over.set()
log.close()
"""


@pytest.fixture
def projecting(broker: Broker) -> Iterator[subprocess.Popen[str]]:
    """Another process that sets group offsets all the time. librdkafka aborts one whose call has run out of time while
    the coordinator was away (2.16)."""
    open_kafka(broker.bootstrap, {}).control.create_topics([TopicSpec("events"), TopicSpec("journal")])
    command = [sys.executable, "-W", "ignore", "-c", PROJECTING, broker.bootstrap]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "projecting\n"
        yield process
        _, _ = process.communicate("over\n", timeout=HANG_S)


def test_kill_9_of_the_broker_loses_nothing_that_was_acknowledged(
    broker: Broker, projecting: subprocess.Popen[str]
) -> None:
    log = open_kafka(broker.bootstrap, {})
    log.control.claim(SHARD, 30.0)
    load = Load(log)
    run_for(load, 1.0)
    deadline = time.monotonic() + HANG_S
    while not (load.kept and len(load.told) > BATCH):
        assert time.monotonic() < deadline
        load.turn(more=True)

    before = len(load.told)
    broker.kill()
    run_for(load, 0.5)
    broker.restart()
    deadline = time.monotonic() + HANG_S
    while len(load.told) <= before + 20_000:
        load.turn(more=True)
        assert time.monotonic() < deadline, "no record is acknowledged after the restart"
    while len(load.told) < load.sent or load.is_transacting:
        load.turn(more=False)
        assert time.monotonic() < deadline, "not everything was answered"

    assert [number for number, _ in load.told] == list(range(load.sent))
    stored = read_all(log, "events")
    assert stored == [(offset, number) for number, offset in load.told]

    last = transact_again(load)
    journal: list[int] = []
    deadline = time.monotonic() + HANG_S
    while journal[-1:] != [last]:  # a committed record can be read a moment after its commit was answered
        assert time.monotonic() < deadline, f"{last} was committed, and cannot be read behind {journal[-3:]}"
        journal = [number for _, number in read_all(log, "journal")]
    assert journal == sorted(set(journal))
    assert set(load.kept) <= set(journal)
    assert set(journal) <= set(load.kept) | set(load.doubtful)
    log.close()
    assert projecting.poll() is None, "the process that sets group offsets lives"


def test_what_was_committed_can_be_read_after_each_of_many_kills(tmp_path: Path) -> None:
    """Each kill comes right behind the answer to a commit, while its marker is being written. Kafka 4.3 and 4.4 forget
    the marker where the partition has no leader when the node comes back, and nothing behind it can be read."""
    broker = start_broker(tmp_path / "kafka")
    try:
        log = open_kafka(broker.bootstrap, {})
        log.control.create_topics([TopicSpec("journal")])
        load = Load(log)
        for round_ in range(KILLS):
            last = transact_again(load)
            for _ in range(COMMITS + round_):
                if load.kept[-1] == last:
                    last = transact_at_once(load)
            broker.kill()
            broker.restart()
            before, load.log = load.log, open_kafka(broker.bootstrap, {})
            claim_again(load.log)
            before.close()
            deadline = time.monotonic() + HANG_S
            while not {*load.kept} <= {number for _, number in read_all(load.log, "journal")}:
                assert time.monotonic() < deadline, f"committed, and cannot be read after kill {round_ + 1}"
                time.sleep(0.05)
        load.log.close()
    finally:
        broker.stop()


def run_for(load: Load, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        load.turn(more=True)


def transact_again(load: Load) -> int:
    """The number of a transaction that was committed. A broker that has just started may be too slow for one: it is
    unavailable or in doubt then, and a new claim comes before the next."""
    deadline = time.monotonic() + HANG_S
    while True:
        claim_again(load.log)
        number = load.transact()
        while load.is_transacting:
            load.turn(more=False)
            assert time.monotonic() < deadline, "no answer to a transaction after the restart"
        if load.kept[-1:] == [number]:
            return number


def transact_at_once(load: Load) -> int:
    """Its number. Who kills now is there before the marker."""
    number = load.transact()
    while load.is_transacting:
        for answer in load.log.poll():
            load.note(answer)
    return number


def claim_again(log: Log) -> None:
    deadline = time.monotonic() + HANG_S
    while True:
        try:
            log.control.claim(SHARD, 10.0)
            return
        except LogError as error:
            assert error.failure.cause == "unavailable", error
            assert time.monotonic() < deadline


def read_all(log: Log, topic: str) -> list[tuple[int, int]]:
    entries: list[tuple[int, int]] = []
    start, end = log.control.bounds(topic, 0)
    while start < end:
        records = log.control.read_range(topic, 0, start, 10_000)
        entries += [(offset, int(value or b"")) for offset, value in zip(records.offsets, records.values, strict=True)]
        start = records.next
    return entries
