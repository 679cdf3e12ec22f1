"""What the Kafka driver tells of a record is what was reported of that record, whatever the order of the reports. It is
not the order of producing: what times out in librdkafka's queue is reported before what is still in flight."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import confluent_kafka
import pytest
from confluent_kafka import KafkaError

from native_backend.log.kafka.headed_producer import HeaderProducer
from native_backend.log.record_headers import HeadedKey
from tests.native_backend.log.kafka.reporting import RUNS

SOURCE = Path(__file__).with_name("fake_librdkafka.c")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    built = tmp_path_factory.mktemp("fake") / "librdkafka.so"
    flags = ["-O1", "-Wall", "-Werror", "-Wno-unused", "-shared", "-fPIC"]
    include = f"-I{sysconfig.get_path('include')}"
    subprocess.run(["gcc", *flags, include, "-o", built, SOURCE, "-ldl"], check=True)
    return built


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("run", RUNS)
def test_a_completion_says_of_a_record_what_was_reported_of_it(library: Path, run: str, seed: int) -> None:
    module = "tests.native_backend.log.kafka.reporting"
    ran = subprocess.run(
        [sys.executable, "-m", module, library, run, str(seed)], capture_output=True, text=True, timeout=120
    )
    assert ran.returncode == 0, ran.stderr


class FakeProducer:
    """confluent-kafka's, as far as it is used; the test calls the callbacks."""

    def __init__(self, _settings: dict[str, Any]) -> None:
        self.delivered: list[Callable[[KafkaError | None, Any], None]] = []
        self.full_at: set[int] = set()
        self.asked = 0

    def produce(self, *_record: object, on_delivery: Callable[[KafkaError | None, Any], None], headers: object) -> None:
        self.asked += 1
        if self.asked - 1 in self.full_at:
            raise BufferError
        self.delivered.append(on_delivery)


@pytest.mark.parametrize("seed", range(20))
def test_the_producer_of_records_with_headers_tells_of_each_what_was_reported_of_it(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    random = Random(seed)
    monkeypatch.setattr(confluent_kafka, "Producer", FakeProducer)
    producer = HeaderProducer({"error_cb": print})
    fake = cast(FakeProducer, producer._producer)
    fake.full_at = {at for at in range(20) if random.random() < 0.1}
    offsets: list[int] = []
    errors: list[tuple[int, int, str]] = []
    keys: list[bytes] = [HeadedKey(b"identity", b"k", (("h", b"v"),)) for _ in range(20)]
    refused = producer.produce("t", 0, keys, [b"v"] * 20, offsets, errors)
    assert {index for index, _, _ in refused} == fake.full_at
    expected: list[int] = [-1] * 20
    late = set()
    for at, index in random.sample([*enumerate(sorted({*range(20)} - fake.full_at))], 20 - len(fake.full_at)):
        error = KafkaError(KafkaError._MSG_TIMED_OUT) if random.random() < 0.4 else None
        late |= {index} if error else set()
        expected[index] = -1 if error else 1000 + index
        fake.delivered[at](error, SimpleNamespace(offset=lambda index=index: 1000 + index))
        assert offsets == expected[: len(offsets)], "in the order of the records"
    assert offsets == expected
    assert {index for index, _, _ in errors} == late
