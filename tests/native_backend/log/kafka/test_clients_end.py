"""A log that is closed has ended all its clients, and so has a claim that failed: librdkafka gives each client threads
and connections, and what is left to Python's collector of cycles keeps them for hours."""

from __future__ import annotations

import gc
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from confluent_kafka import Producer

from native_backend.log.kafka import settings
from native_backend.log.kafka.batches import BatchSizes
from native_backend.log.kafka.claims import Claims
from native_backend.log.open import open_kafka
from native_backend.log.port import Append, Log, LogError, TopicSpec, Write
from native_backend.log.record_headers import HeadedKey
from tests.kit.patience import until
from tests.kit.processes.broker import free_port

RANGE_S = 3.0
HEADED = HeadedKey(b"identity", b"k", (("h", b"v"),))


class Threads:
    """Of librdkafka in this process, but for those that were there before."""

    def __init__(self) -> None:
        self._before = self._now()

    def _now(self) -> set[str]:
        names: dict[str, str] = {}
        for thread in Path("/proc/self/task").iterdir():
            with suppress(OSError):  # it has just ended
                names[thread.name] = (thread / "comm").read_text()
        return {thread for thread, name in names.items() if name.startswith("rdk:")}

    def count(self) -> int:
        return len(self._now() - self._before)


@pytest.fixture
def threads() -> Iterator[Threads]:
    """No cycle is collected meanwhile."""
    gc.collect()
    gc.disable()
    yield Threads()
    gc.enable()


def polled(log: Log, count: int, what: str) -> list[str]:
    """Why so many appends or transactions failed; "" where one did not."""
    failures: list[str] = []

    def are_there() -> bool:
        failures.extend(answer.failure.cause if answer.failure else "" for answer in log.poll())
        return len(failures) >= count

    until(are_there, what)
    return failures


def use_all(log: Log, name: str) -> None:
    log.control.create_topics([TopicSpec(name)])
    for key in (b"k", HEADED):
        for aside in (False, True):
            log.append(Append(name, 0, [key], [b"v"], aside=aside))
    assert polled(log, 4, "what was appended") == [""] * 4
    log.control.put(name, b"k", b"v")
    log.control.project(f"{name}.group", {(name, 0): (1, "")})
    log.control.claim(name)
    for _ in range(2):
        log.transact(name, [Write(name, 0, b"k", b"v")], None)
    assert polled(log, 2, "what was transacted") == ["", ""]
    log.control.read_range(name, 0, 0, 10, RANGE_S)
    reader = log.open_reader(name, 0, 0)
    until(lambda: reader.read(1), "an event")


def close(threads: Threads, *logs: Log) -> None:
    """Nothing is left of them."""
    for log in logs:
        log.close()
    until(lambda: not threads.count(), "the end of their clients")


def test_of_a_log_that_is_closed_no_client_is_left(kafka_bootstrap: str, threads: Threads) -> None:
    log = open_kafka(kafka_bootstrap, {})
    use_all(log, f"k{uuid.uuid4().hex[:8]}")
    assert threads.count() > 10
    close(threads, log)


def test_nor_of_one_whose_claim_another_has_taken(kafka_bootstrap: str, threads: Threads) -> None:
    name = f"k{uuid.uuid4().hex[:8]}"
    log, other = open_kafka(kafka_bootstrap, {}), open_kafka(kafka_bootstrap, {})
    use_all(log, name)
    other.control.claim(name)
    log.transact(name, [Write(name, 0, b"k", b"v")], None)
    assert polled(log, 1, "the answer of the fence") == ["fenced"]
    close(threads, log, other)


def test_claims_that_fail_leave_nothing_behind(threads: Threads) -> None:
    log = open_kafka(f"127.0.0.1:{free_port()}", {})
    kept: list[LogError] = []

    def fails() -> int:
        with pytest.raises(LogError, match="unavailable") as failure:
            log.control.claim("shard", 0.5)
        kept.append(failure.value)  # as who answers it to the realm does
        return threads.count()

    first = fails()
    for _ in range(4):
        fails()
    until(lambda: threads.count() <= first, "no more than after the first one")
    close(threads, log)


def test_each_claim_ends_the_clients_of_the_one_before(kafka_bootstrap: str, threads: Threads) -> None:
    log = open_kafka(kafka_bootstrap, {})
    name = f"k{uuid.uuid4().hex[:8]}"
    use_all(log, name)
    held = threads.count()
    for _ in range(5):
        log.control.claim(name)
        log.poll()
    until(lambda: threads.count() <= held, "the clients of one claim")
    close(threads, log)


def test_what_comes_when_it_is_closed_makes_no_client(kafka_bootstrap: str, threads: Threads) -> None:
    log = open_kafka(kafka_bootstrap, {})
    name = f"k{uuid.uuid4().hex[:8]}"
    use_all(log, name)
    log.close()
    control = log.control
    calls: list[Callable[[], object]] = [
        lambda: control.project(f"{name}.group", {(name, 0): (2, "")}),
        lambda: control.claim(name),
        lambda: control.put(name, b"k", b"v"),
        lambda: control.bounds(name, 0),
    ]
    for call in calls:
        with pytest.raises(LogError, match="unavailable: the log is closed"):
            call()
    close(threads, log)


def test_a_claim_that_cannot_read_a_certificate_fails_and_holds_no_client(threads: Threads) -> None:
    """Its second client, while a file of the TLS settings is changed."""
    bootstrap = f"127.0.0.1:{free_port()}"

    def make(name: str) -> Producer:
        tls = {"security.protocol": "SSL", "ssl.ca.location": "/nowhere/ca.pem"} if name.endswith(".second") else {}
        return Producer(settings.transactional(bootstrap, tls, name, lambda _: None))

    claims = Claims(make, BatchSizes())
    with pytest.raises(LogError, match=r"ca\.location"):
        claims.claim("shard", 5.0)
    until(lambda: threads.count() == 0, "the end of the first client")
