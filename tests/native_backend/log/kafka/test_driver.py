"""What the Kafka driver promises beyond the port, on a real broker; what no broker does on demand, on a stand-in."""

from __future__ import annotations

import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from native_backend.log.open import open_kafka
from native_backend.log.port import Append, Appended, Completion, Log, LogError, TopicSpec, Write
from tests.kit.patience import HANG_S
from tests.kit.processes.broker import free_port

pytestmark = [
    pytest.mark.filterwarnings("ignore:(read|open)_text is deprecated:DeprecationWarning"),
]
RIVAL = """
import sys, time
from native_backend.log.port import Write
from native_backend.log.open import open_kafka
log = open_kafka(sys.argv[1], {})
shard, topic = sys.argv[2:]
def transact(value):
    log.transact(shard, [Write(topic, 0, b"k", value)], None)
    while not (answers := log.poll()):
        time.sleep(0.001)
    return answers[0].failure.cause if answers[0].failure else "stored"
log.control.claim(shard, 30.0)
print(transact(b"first"), flush=True)
sys.stdin.readline()
print(transact(b"fenced"), flush=True)
log.close()
"""


@pytest.fixture
def log(kafka_bootstrap: str) -> Iterator[Log]:
    log = open_kafka(kafka_bootstrap, {})
    yield log
    log.close()


@pytest.fixture
def topic(log: Log) -> str:
    name = f"k{uuid.uuid4().hex[:8]}"
    log.control.create_topics([TopicSpec(name)])
    return name


def answered(log: Log, count: int) -> list[Completion]:
    answers: list[Completion] = []
    deadline = time.monotonic() + HANG_S
    while sum(len(answer.offsets) for answer in answers) < count:
        answers += log.poll()
        assert time.monotonic() < deadline
        time.sleep(0.001)
    return answers


def test_a_claim_of_another_process_is_fenced_by_ours(log: Log, topic: str, kafka_bootstrap: str) -> None:
    shard = f"{topic}/journal"
    rival = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", RIVAL, kafka_bootstrap, shard, topic],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert rival.stdout is not None
    assert rival.stdout.readline() == "stored\n"
    log.control.claim(shard)
    output, _ = rival.communicate("now\n", timeout=HANG_S)
    assert output == "fenced\n"
    log.transact(shard, [Write(topic, 0, b"k", b"ours")], None)
    (answer,) = answered(log, 1)
    assert answer.failure is None
    deadline = time.monotonic() + HANG_S
    while (values := log.control.read_range(topic, 0, 0, 10).values) != [b"first", b"ours"]:
        assert values == [b"first"], "Kafka may show what is committed a little late"
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_more_than_the_clients_queue_holds_waits_in_order(topic: str, kafka_bootstrap: str) -> None:
    log = open_kafka(kafka_bootstrap, {"queue.buffering.max.messages": 1000})
    for start in range(0, 30_000, 3000):
        log.append(Append(topic, 0, [b"k"] * 3000, [b"%d" % number for number in range(start, start + 3000)]))
    answers = answered(log, 30_000)
    assert all(answer.failure is None for answer in answers)
    records = log.control.read_range(topic, 0, 0, 40_000)
    assert records.values == [b"%d" % number for number in range(30_000)]
    assert records.offsets == [offset for answer in answers for offset in answer.offsets]
    log.close()


def test_a_foreign_commit_is_read_without_its_trailing_nul(log: Log, topic: str, kafka_bootstrap: str) -> None:
    from confluent_kafka import Consumer, TopicPartition

    group = f"{topic}.group"
    consumer = Consumer({"bootstrap.servers": kafka_bootstrap, "group.id": group})
    consumer.commit(offsets=[TopicPartition(topic, 0, 7, metadata="foreign")], asynchronous=False)
    consumer.close()
    assert log.control.projected(group) == {(topic, 0): (7, "foreign")}


def test_event_topics_are_kept_for_ever_and_compacted_ones_compacted(
    log: Log, topic: str, kafka_bootstrap: str
) -> None:
    from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType  # type: ignore[attr-defined]

    log.control.create_topics([TopicSpec(f"{topic}.c", compacted=True)])
    admin = AdminClient({"bootstrap.servers": kafka_bootstrap})
    wanted = [ConfigResource(ResourceType.TOPIC, name) for name in (topic, f"{topic}.c")]
    configs = {resource.name: future.result(10.0) for resource, future in admin.describe_configs(wanted).items()}
    assert configs[topic]["retention.ms"].value == "-1"
    assert configs[topic]["cleanup.policy"].value == "delete"
    assert configs[f"{topic}.c"]["cleanup.policy"].value == "compact"


def test_an_aborted_transaction_leaves_a_gap_and_no_record(log: Log, topic: str) -> None:
    shard = f"{topic}/journal"
    log.control.claim(shard)
    log.transact(shard, [Write(topic, 0, b"k", b"lost"), Write(f"{topic}.never", 0, b"k", b"v")], None)
    (answer,) = answered(log, 2)
    assert answer.failure is not None
    assert answer.failure.cause == "not-found"
    log.transact(shard, [Write(topic, 0, b"k", b"kept")], None)
    (answer,) = answered(log, 1)
    records, deadline = log.control.read_range(topic, 0, 0, 10), time.monotonic() + HANG_S
    while not records.values and time.monotonic() < deadline:  # Kafka may show what is committed a little late
        records = log.control.read_range(topic, 0, 0, 10)
    assert records.values == [b"kept"]
    assert records.offsets == answer.offsets
    assert records.offsets[0] > 0
    assert records.next == log.control.bounds(topic, 0)[1]


def test_without_a_broker_control_calls_are_unavailable_at_their_deadline() -> None:
    log = open_kafka(f"127.0.0.1:{free_port()}", {})
    calls: list[Callable[[], object]] = [
        lambda: log.control.topics("x", 0.5),
        lambda: log.control.create_topics([TopicSpec("x")], 0.5),
        lambda: log.control.bounds("x", 0, 0.5),
        lambda: log.control.claim("s", 0.5),
    ]
    for call in calls:
        started = time.monotonic()
        with pytest.raises(LogError) as raised:
            call()
        assert raised.value.failure.cause == "unavailable"
        assert time.monotonic() - started < 60  # librdkafka's own deadlines are longer
    with pytest.raises(LogError) as raised:
        log.control.put("x", b"k", b"v", 0.5)
    assert raised.value.failure.cause == "indeterminate"
    log.close(0.5)


def test_an_append_that_is_not_acknowledged_in_time_is_in_doubt() -> None:
    log = open_kafka(f"127.0.0.1:{free_port()}", {"delivery.timeout.ms": 300})
    log.append(Append("x", 0, [b"k"] * 3, [b"v"] * 3))
    (answer,) = answered(log, 3)
    assert isinstance(answer, Appended)
    assert answer.failure is not None
    assert (answer.failure.cause, answer.offsets) == ("indeterminate", [-1, -1, -1])
    assert answer.failure.code == "_MSG_TIMED_OUT"
    log.close(0.5)


@pytest.mark.parametrize("small", [{"queue.buffering.max.kbytes": 1024}, {"queue.buffering.max.messages": 100}])
def test_a_queue_that_is_full_makes_appends_wait(kafka_bootstrap: str, topic: str, small: dict[str, int]) -> None:
    """librdkafka refuses what does not fit; no one hears of that, and nothing changes its place."""
    log = open_kafka(kafka_bootstrap, small)
    sizes = [10, 200_000, 90_000, 10, 10, 300_000]
    values = [b"%d;" % number + b"x" * sizes[number % len(sizes)] for number in range(240)]
    for at in range(0, len(values), 60):
        log.append(Append(topic, 0, [b"k"] * 60, values[at : at + 60]))
    answers = answered(log, len(values))
    assert {answer.failure for answer in answers} == {None}
    assert [value.split(b";")[0] for value in _values(log, topic)] == [b"%d" % number for number in range(240)]
    log.close()


def _values(log: Log, topic: str) -> list[bytes]:
    values: list[bytes] = []
    at, end = log.control.bounds(topic, 0)
    while at < end:
        records = log.control.read_range(topic, 0, at, 50)
        values += [value for value in records.values if value is not None]
        at = records.next
    return values


def test_evidence_outlives_what_is_published() -> None:
    """A deadline that passes makes librdkafka begin a new epoch, and doubles what was under way: not for evidence."""
    log = open_kafka(f"127.0.0.1:{free_port()}", {"delivery.timeout.ms": 300})
    log.append(Append("x.outcomes", 0, [b"k"], [b"v"], "evidence", aside=True))
    log.append(Append("x", 0, [b"k"], [b"v"], "published"))
    (answer,) = answered(log, 1)
    assert isinstance(answer, Appended)
    assert answer.batch.owner == "published"
    for _ in range(150):  # librdkafka looks for what is overdue once a second
        assert log.poll() == []
        time.sleep(0.01)
    log.close(0.1)


def test_evidence_is_stored_like_anything_else(log: Log, topic: str) -> None:
    log.append(Append(topic, 0, [b"k"], [b"evidence"], aside=True))
    answered(log, 1)
    log.append(Append(topic, 0, [b"k"], [b"published"]))
    answered(log, 1)
    assert log.control.read_range(topic, 0, 0, 10).values == [b"evidence", b"published"]


@pytest.mark.parametrize("name", ["no.such.setting", "fetch.no.such.setting"])
def test_a_client_setting_that_does_not_exist_is_named_at_once(name: str) -> None:
    with pytest.raises(LogError, match=rf"realm\.client.*{name}"):
        open_kafka("127.0.0.1:1", {name: 1})


# -- on a stand-in: what a broker does not do on demand


class FakeProducer:
    """Takes what it is given; the test fills the columns."""

    def __init__(self) -> None:
        self.flights: list[tuple[list[int], list[tuple[int, int, str]]]] = []
        self.refuse: dict[int, int] = {}
        self.raises: BaseException | None = None
        self.is_closed = False
        self.looked_up: list[str] = []

    def look_up(self, topic: str, _timeout_s: float) -> None:
        self.looked_up.append(topic)

    def produce(
        self, _topic: str, partition: int, keys: list[bytes], values: list[bytes], offsets: list[int], errors: Any
    ) -> list[tuple[int, int, str]]:
        assert partition == 0
        assert len(keys) == len(values)
        self.flights.append((offsets, errors))
        return [(index, code, "refused") for index, code in self.refuse.items()]

    def poll(self) -> None:
        if self.raises is not None:
            raise self.raises

    def close(self) -> None:
        self.is_closed = True

    def disable_wakeups(self) -> None:
        pass


def publisher(producers: list[FakeProducer]) -> Any:
    from native_backend.log.kafka.publisher import Publisher

    def make() -> Any:
        producers.append(FakeProducer())
        return producers[-1]

    return Publisher(make, make, 10_000, 1_000_000)


def completions_of(answers: list[Appended]) -> list[tuple[int, list[int], str]]:
    return [(a.first, a.offsets, a.failure.cause if a.failure else "") for a in answers]


def test_completions_are_sliced_as_the_offsets_come() -> None:
    producers: list[FakeProducer] = []
    subject = publisher(producers)
    for _ in range(3):
        subject.append(Append("t", 0, [b"k"] * 3, [b"v"] * 3))
    ((first, _),) = producers[0].flights
    first.append(10)
    assert completions_of(subject.poll()) == [(0, [10], "")]
    assert completions_of(subject.poll()) == []
    first.append(11)
    assert completions_of(subject.poll()) == [(1, [11], "")]
    assert len(producers[0].flights) == 1, "the partition's next batches wait until all of this one has landed"
    first.append(12)
    assert completions_of(subject.poll()) == [(2, [12], "")]
    _, (second, _), (third, _) = producers[0].flights
    second += [20, 21, 22]
    third += [23]
    assert completions_of(subject.poll()) == [(0, [20, 21, 22], ""), (0, [23], "")]
    assert not subject.is_idle
    third += [24, 25]
    assert completions_of(subject.poll()) == [(1, [24, 25], "")]
    assert subject.is_idle


def test_a_launch_is_as_large_as_the_producer_sends_at_once() -> None:
    from native_backend.log.kafka.settings import LAUNCH_MESSAGES

    producers: list[FakeProducer] = []
    subject = publisher(producers)
    for count in (LAUNCH_MESSAGES - 6, LAUNCH_MESSAGES, 5):
        subject.append(Append("t", 0, [b"k"] * count, [b"v"] * count))
    stored = 0
    sizes: list[list[int]] = []
    while not subject.is_idle:
        launched = len(producers[0].flights)
        sizes.append([])
        for offsets, _ in producers[0].flights[sum(map(len, sizes)) :]:
            (lane,) = subject._lanes.values()
            (flight,) = [candidate for candidate in lane.flying if candidate.offsets is offsets]
            sizes[-1].append(flight.count)
            offsets += range(stored, stored + flight.count)
            stored += flight.count
        subject.poll()
        assert len(producers[0].flights) > launched or subject.is_idle
    assert sizes == [[LAUNCH_MESSAGES - 6], [LAUNCH_MESSAGES], [5]]
    assert stored == 2 * LAUNCH_MESSAGES - 1


def test_a_record_that_the_producer_refuses_at_once_fails_in_its_place() -> None:
    from confluent_kafka import KafkaError

    producers: list[FakeProducer] = []
    subject = publisher(producers)
    producers[0].refuse = {1: KafkaError.MSG_SIZE_TOO_LARGE}
    subject.append(Append("t", 0, [b"k"] * 4, [b"v"] * 4))
    ((offsets, errors),) = producers[0].flights
    offsets += [5, -1]
    assert completions_of(subject.poll()) == []
    errors.append((3, KafkaError._MSG_TIMED_OUT, "late"))
    offsets += [6, -1]
    expected = [(0, [5], ""), (1, [-1], "too-large"), (2, [6], ""), (3, [-1], "indeterminate")]
    assert completions_of(subject.poll()) == expected
    assert subject.is_idle


def test_a_fatal_error_leaves_what_was_in_flight_in_doubt_and_a_new_producer_goes_on() -> None:
    from confluent_kafka import KafkaError, KafkaException

    producers: list[FakeProducer] = []
    subject = publisher(producers)
    subject.append(Append("t", 0, [b"k"] * 3, [b"v"] * 3))
    ((offsets, _),) = producers[0].flights
    offsets.append(10)
    assert completions_of(subject.poll()) == [(0, [10], "")]
    producers[0].raises = KafkaException(KafkaError(KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER))
    assert completions_of(subject.poll()) == [(1, [-1, -1], "indeterminate")]
    subject.append(Append("t", 0, [b"k"], [b"v"]))
    ((offsets, _),) = producers[1].flights
    offsets.append(30)
    assert completions_of(subject.poll()) == [(0, [30], "")]
    subject.close()
    assert producers[0].is_closed


def test_no_error_code_has_two_names() -> None:
    from mappings.compiler.errors import shipped_errors
    from native_backend.log.kafka.causes import causes_in_force

    assert len(causes_in_force()) == len(shipped_errors().codes["kafka"])


def test_each_client_takes_only_what_concerns_it() -> None:
    from native_backend.log.kafka import settings

    client: dict[str, str | int | float | bool] = {
        "linger.ms": 5,
        "fetch.min.bytes": 10,
        "security.protocol": "SASL_SSL",
        "acks": 1,
    }
    publish = settings.publish("b:1", client, print)
    tail = settings.tail("b:1", client, print)
    shard = settings.transactional("b:1", client, "s", print)
    assert (publish["linger.ms"], publish["acks"]) == (5, "all")
    assert "fetch.min.bytes" not in publish
    assert tail["fetch.min.bytes"] == 10
    assert not {"linger.ms", "acks"} & tail.keys()
    assert (shard["linger.ms"], shard["transactional.id"]) == (0, "s")
    assert settings.admin("b:1,c:2", client)["security_protocol"] == "SASL_SSL"
    assert settings.admin("b:1,c:2", client)["bootstrap_servers"] == ["b:1", "c:2"]


def test_a_topic_that_stays_unknown_leaves_nothing_counted_as_in_flight() -> None:
    from confluent_kafka import KafkaError

    producers: list[FakeProducer] = []
    subject = publisher(producers)
    producers[0].refuse = dict.fromkeys(range(3), KafkaError._UNKNOWN_TOPIC)
    subject.append(Append("t", 0, [b"k"] * 3, [b"v" * 100] * 3))
    answers: list[Appended] = []
    deadline = time.monotonic() + HANG_S
    while not answers:
        answers = subject.poll()
        assert time.monotonic() < deadline
    assert completions_of(answers) == [(0, [-1, -1, -1], "not-found")]
    assert producers[0].looked_up == ["t"]
    assert (subject.is_idle, subject._count, subject._bytes) == (True, 0, 0)
