"""Records that a broker does not take, beside others of their request: each has its own answer, and order stays."""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import KafkaError

from native_backend.log.columns import Strings
from native_backend.log.kafka.publisher import Publisher
from native_backend.log.open import open_kafka
from native_backend.log.port import Append, Appended, Log, TopicSpec, Transacted, Write
from native_backend.log.record_headers import HeadedKey
from tests.kit.patience import HANG_S

pytestmark = [
    pytest.mark.filterwarnings("ignore:(read|open)_text is deprecated:DeprecationWarning"),
]


@pytest.fixture
def log(kafka_bootstrap: str) -> Iterator[Log]:
    log = open_kafka(kafka_bootstrap, {})
    yield log
    log.close()


def outcomes(log: Any, count: int) -> dict[bytes, str]:
    """By value, as many as were appended."""
    causes: dict[bytes, str] = {}
    deadline = time.monotonic() + HANG_S
    while len(causes) < count:
        for answer in log.poll():
            assert isinstance(answer, Appended)
            for index in range(answer.first, answer.first + len(answer.offsets)):
                value = answer.batch.values[index]
                assert value is not None
                assert value not in causes, "answered twice"
                causes[value] = answer.failure.cause if answer.failure else "stored"
        assert time.monotonic() < deadline
        time.sleep(log.poll_interval_s)
    return causes


@pytest.mark.parametrize("bad", [{1}, {0}, {2}, {0, 1, 2}, {0, 7, 8, 19}, set(range(1, 20))])
@pytest.mark.parametrize("batches", [1, 20])
def test_each_record_beside_one_that_the_broker_does_not_take_has_its_own_answer(
    log: Log, bad: set[int], batches: int
) -> None:
    """A record without a key, for a compacted topic. The client cuts a batch into requests as it likes. Where a later
    request is stored already, its publisher has to send again what was only beside a bad record."""
    name = f"k{uuid.uuid4().hex[:8]}"
    log.control.create_topics([TopicSpec(name, compacted=True)])
    causes: dict[bytes, str] = {}
    sent, step, rounds = list(range(20)), 20 // batches, 0
    while sent:
        rounds += 1
        keys = [HeadedKey(b"", None if at in bad else b"%d" % at, (("h", b"v"),)) for at in sent]
        values = [b"%d" % at for at in sent]
        for start in range(0, len(sent), step):
            log.append(Append(name, 0, keys[start : start + step], values[start : start + step]))
        causes |= outcomes(log, len(sent))
        sent = again(causes, sent)
    assert causes == {b"%d" % at: "invalid" if at in bad else "stored" for at in range(20)}
    log.append(Append(name, 0, [HeadedKey(b"", b"end", (("h", b"v"),))], [b"end"]))
    assert outcomes(log, 1) == {b"end": "stored"}
    kept = log.control.read_range(name, 0, 0, 100).values
    assert sorted(kept, key=_number) == [b"%d" % at for at in range(20) if at not in bad] + [b"end"], "each once"
    assert rounds > 1 or kept == sorted(kept, key=_number), "in order, where nothing was sent again by its publisher"


def again(causes: dict[bytes, str], sent: list[int]) -> list[int]:
    """Those that may be sent again; each of them lies before one that is stored."""
    unclear = [at for at in sent if causes[b"%d" % at] == "unavailable"]
    stored = [at for at in sent if causes[b"%d" % at] == "stored"]
    assert not unclear or max(unclear) < max(stored, default=-1), "behind it nothing is stored: it can be told apart"
    return unclear


def _number(value: bytes | None) -> int:
    return 99 if value == b"end" else int(value or b"")


def test_after_a_transaction_with_a_refused_record_the_next_ones_are_committed(log: Log) -> None:
    """Also where a good record of its request is reported first. Both producers of the shard have had their turn."""
    name = f"k{uuid.uuid4().hex[:8]}"
    log.control.create_topics([TopicSpec(f"{name}.c", compacted=True), TopicSpec(name)])
    log.control.claim(name, 60.0)
    good = Write(name, 0, b"k", b"good")
    beside, bad = (Write(f"{name}.c", 0, HeadedKey(b"", key, (("h", b"v"),)), b"v") for key in (b"k", None))

    def cause(*writes: Write) -> str:
        log.transact(name, writes, None)
        while not (answers := log.poll()):
            time.sleep(log.poll_interval_s)
        (answer,) = answers
        assert isinstance(answer, Transacted)
        return answer.failure.cause if answer.failure else "stored"

    for _ in range(4):
        assert cause(good, beside, bad, beside) == "invalid"
        assert [cause(good), cause(good), cause(good)] == ["stored"] * 3
    values = log.control.read_range(name, 0, 0, 100).values
    assert values == [b"good"] * len(values)
    assert len(values) in (11, 12), "Kafka may show what is committed a little late"


class Broker:
    """A producer whose broker takes all of a request or nothing of it. It cuts what it is given into requests as it
    likes, and answers when it likes. Values that begin with "-" are not taken."""

    poll_interval_s = 0.0

    def __init__(self, source: random.Random, names_one: bool, in_one: bool = False) -> None:
        self._source = source
        self._in_one = in_one  # each launch is one request
        self._names_one = names_one  # the broker says which record it was
        self._sent: list[tuple[bytes, list[int], list[tuple[int, int, str]], int]] = []
        self.stored: list[bytes] = []
        self.requests = 0

    def produce(
        self, _topic: str, _partition: int, _keys: Strings, values: Strings, offsets: list[int], errors: Any
    ) -> list[tuple[int, int, str]]:
        self._sent += [(value, offsets, errors, index) for index, value in enumerate(values)]
        return []

    def poll(self) -> None:
        if not self._sent or self._source.random() < 0.3:
            return
        count = len(self._sent) if self._in_one else self._source.randint(1, len(self._sent))
        request, self._sent = self._sent[:count], self._sent[count:]
        self.requests += 1
        is_refused = any(value.startswith(b"-") for value, *_ in request)
        for value, offsets, errors, index in request:
            if not is_refused:
                offsets.append(len(self.stored))
                self.stored.append(value)
                continue
            mine = value.startswith(b"-") or not self._names_one
            code = KafkaError.INVALID_RECORD if mine else KafkaError._INVALID_DIFFERENT_RECORD
            errors.append((index, code, "refused"))
            offsets.append(-1)

    def close(self) -> None: ...
    def disable_wakeups(self) -> None: ...
    def look_up(self, _topic: str, _timeout_s: float) -> None: ...


@pytest.mark.parametrize("seed", range(200))
def test_what_is_sent_again_keeps_its_order_and_is_stored_once(seed: int) -> None:
    source = random.Random(seed)
    broker = Broker(source, names_one=seed % 2 == 0)
    subject: Any = Publisher(lambda: broker, lambda: broker, 10_000, 1_000_000, launch_max=64)  # type: ignore[arg-type,return-value]
    subject.poll_interval_s = 0.0
    share = source.choice((0.01, 0.2, 1.0))
    values = [b"-%d" % at if source.random() < share else b"+%d" % at for at in range(source.randint(1, 300))]
    start = 0
    while start < len(values):
        step = source.randint(1, 40)
        subject.append(Append("t", 0, [b"k"] * len(values[start : start + step]), values[start : start + step]))
        start += step
    causes = outcomes(subject, len(values))
    stored = [value for value in values if causes[value] == "stored"]
    assert broker.stored == stored, "in order, once"
    for value, cause in causes.items():
        if value.startswith(b"+"):
            assert cause in ("stored", "unavailable")
        else:
            assert cause in ("invalid", "unavailable")
    assert subject.is_idle
    assert (subject._count, subject._bytes) == (0, 0)


def test_one_refused_record_of_many_costs_few_requests() -> None:
    broker = Broker(random.Random(1), names_one=False, in_one=True)
    subject: Any = Publisher(lambda: broker, lambda: broker, 10_000, 1_000_000, launch_max=1024)  # type: ignore[arg-type,return-value]
    subject.poll_interval_s = 0.0
    values = [b"-" if at == 700 else b"+%d" % at for at in range(1024)]
    subject.append(Append("t", 0, [b"k"] * 1024, values))
    causes = outcomes(subject, 1024)
    assert causes.pop(b"-") == "invalid"
    assert set(causes.values()) == {"stored"}
    assert broker.requests < 50
