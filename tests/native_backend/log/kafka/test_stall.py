"""The broker stalls, sockets open, near the deadline of what is under way: what was told is true all the same.

Each message that was told stored is at exactly its offset, with its own body, and none that was told certainly not
stored is in the log. Sixteen producers have their deadlines at sixteen places around the moment at which the broker
goes on: librdkafka looks for what is overdue once a second, and what came wrong did so between that look and the
broker's late answer. Half of them send records with headers, which go out by another producer.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random

import pytest

from native_backend.log.open import open_kafka
from native_backend.log.port import Append, Appended, Log, TopicSpec
from native_backend.log.record_headers import HeadedKey
from tests.kit.patience import HANG_S, until
from tests.kit.processes.broker import Broker, start_broker

pytestmark = [
    pytest.mark.filterwarnings("ignore:(read|open)_text is deprecated:DeprecationWarning"),
]
PRODUCERS = 16
STALL_S = 2.2
NEAREST_MS, STEP_MS = 50, 75  # how long before the end of the stall the first deadline is, and how far they lie apart
MESSAGES = 120
SIZES = (4096, 10_000, 20_000, 40_000)
PATIENCE_S = HANG_S


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    broker = start_broker(tmp_path_factory.mktemp("kafka"))
    yield broker
    broker.stop()


@contextmanager
def stopped(broker: Broker) -> Iterator[None]:
    os.kill(broker.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(broker.pid, signal.SIGCONT)


class Sender:
    """A log of its own, whose publishes have this deadline, and what it was told of them."""

    def __init__(self, bootstrap: str, topic: str, deadline_ms: int, headed: bool) -> None:
        self.log: Log = open_kafka(bootstrap, {"delivery.timeout.ms": deadline_ms})
        self.topic, self.headed, self.sent = topic, headed, 0
        self.told: list[Appended] = []

    def send(self, values: list[bytes]) -> None:
        key = HeadedKey(b"", b"k", (("h", b"v"),)) if self.headed else b"k"
        self.log.append(Append(self.topic, 0, [key] * len(values), values))
        self.sent += len(values)

    def poll(self) -> None:
        for answer in self.log.poll():
            assert isinstance(answer, Appended)
            self.told.append(answer)

    @property
    def is_answered(self) -> bool:
        return sum(len(answer.offsets) for answer in self.told) == self.sent


def await_answers(senders: list[Sender]) -> None:
    end_s = time.monotonic() + PATIENCE_S
    while not all(sender.is_answered for sender in senders):
        assert time.monotonic() < end_s, "not all was answered"
        for sender in senders:
            sender.poll()
        time.sleep(0.002)


def stored(log: Log, topic: str, end: int) -> dict[int, bytes | None]:
    """`end`: so far it must come to be readable. A partition that has just got its leader back shows less at first."""
    until(lambda: log.control.bounds(topic, 0)[1] >= end, "all that was answered as stored")
    values: dict[int, bytes | None] = {}
    at, end = log.control.bounds(topic, 0)
    while at < end:
        records = log.control.read_range(topic, 0, at, 200)
        values.update(zip(records.offsets, records.values, strict=True))
        at = records.next
    return values


@pytest.mark.parametrize("stall", range(2))
def test_completions_during_a_stall_near_the_deadline_are_true(broker: Broker, stall: int) -> None:
    random = Random(stall)
    deadlines_ms = [round(STALL_S * 1000) - NEAREST_MS - STEP_MS * at for at in range(PRODUCERS)]
    senders = [
        Sender(broker.bootstrap, f"stall{stall}.{at}", deadline_ms, headed=at % 2 == stall)
        for at, deadline_ms in enumerate(deadlines_ms)
    ]
    senders[0].log.control.create_topics([TopicSpec(sender.topic) for sender in senders])
    for number in range(3):  # small ones first: connections and producer ids are there
        for sender in senders:
            sender.send([b"small %d" % number])
        await_answers(senders)
    bodies = [[b"%d;" % number + b"." * random.choice(SIZES) for number in range(MESSAGES)] for _ in range(PRODUCERS)]
    with stopped(broker):
        end_s = time.monotonic() + STALL_S
        for sender, values in zip(senders, bodies, strict=True):
            sender.send(values)
        while time.monotonic() < end_s:
            for sender in senders:
                sender.poll()
            time.sleep(0.002)
    await_answers(senders)
    reader = open_kafka(broker.bootstrap, {})
    causes = set()
    for sender in senders:
        offsets = [answer.offsets[-1] for answer in sender.told if answer.failure is None]
        records = stored(reader, sender.topic, max(offsets, default=-1) + 1)
        there = set(records.values())
        for answer in sender.told:
            values = [*answer.batch.values[answer.first : answer.first + len(answer.offsets)]]
            causes.add(answer.failure.cause if answer.failure else "stored")
            if answer.failure is None:
                assert [records.get(offset) for offset in answer.offsets] == values, "stored, each at its own offset"
            elif answer.failure.cause != "indeterminate":
                assert not there & set(values), f"told {answer.failure}, and stored"
        sender.log.close()
    reader.close()
    assert {"stored", "indeterminate"} <= causes, "the stall reached into the deadlines"
