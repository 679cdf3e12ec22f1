"""What is asked again, how often, and how it is counted."""

from __future__ import annotations

import socket
import ssl
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import closing
from itertools import count
from typing import Any, cast

import pytest
from kafka import errors as kafka_errors

from mappings.compiler.errors import shipped_errors
from native_backend.limits import RealmLimits
from native_backend.log.kafka.admin import AdminCalls
from native_backend.log.port import Cause, Failure, LogError
from native_backend.log.retry import Retries, job_code
from native_backend.log.worker import ThreadWorker
from tests.kit.patience import HANG_S, until

LIMITS = RealmLimits()


class Job:
    """Fails so many times, then gives a value."""

    def __init__(self, failures: int, cause: Cause = "unavailable", code: str = "_TRANSPORT") -> None:
        self.asked, self._failures, self._failure = 0, failures, Failure(cause, "not now", code)

    def __call__(self) -> str:
        self.asked += 1
        if self.asked <= self._failures:
            raise LogError(self._failure)
        return "done"


def test_a_job_that_was_not_done_is_asked_again() -> None:
    retries, job = Retries(), Job(3)
    assert retries.job(job) == "done"
    assert (job.asked, retries.asked_again, retries.given_up) == (4, {"_TRANSPORT": 3}, {})


def test_it_is_given_up_after_so_many_times() -> None:
    retries, job = Retries(), Job(99)
    with pytest.raises(LogError, match="not now"):
        retries.job(job)
    assert job.asked == LIMITS.retry_attempts
    assert (retries.asked_again, retries.given_up) == ({"_TRANSPORT": job.asked - 1}, {"_TRANSPORT": 1})


def test_it_is_given_up_after_so_long() -> None:
    retries, job = Retries(), Job(10**6)
    begin = time.monotonic()
    with pytest.raises(LogError):
        retries.ask(job, job_code, 10**6, 0.3)
    assert 1 < job.asked < 10, "the waits double"
    assert time.monotonic() - begin < 60
    assert retries.given_up == {"_TRANSPORT": 1}


@pytest.mark.parametrize(
    ("cause", "code"),
    [
        ("indeterminate", "REQUEST_TIMED_OUT"),  # it may have been done
        ("refused", "TOPIC_AUTHORIZATION_FAILED"),
        ("not-found", "UNKNOWN_TOPIC_OR_PART"),
        ("fenced", "_FENCED"),
        ("unexpected", "UNKNOWN"),
    ],
)
def test_what_waiting_does_not_help_is_asked_once(cause: Cause, code: str) -> None:
    retries, job = Retries(), Job(1, cause, code)
    with pytest.raises(LogError):
        retries.job(job)
    assert (job.asked, retries.asked_again, retries.given_up) == (1, {}, {})


def test_the_table_of_errors_says_what_is_asked_again() -> None:
    for codes in shipped_errors().codes.values():
        for code, native in codes.items():
            worth = job_code(LogError(Failure(cast(Cause, native.cause), "", code)))
            assert worth == (code if (native.cause, native.retry) == ("unavailable", "inside") else None)
    assert job_code(LogError(Failure("unavailable", "no answer in time"))) == "unavailable"
    assert job_code(ValueError()) is None


def test_closing_ends_the_wait() -> None:
    retries, attempt = Retries(), threading.Event()

    def job() -> None:
        attempt.set()
        raise LogError(Failure("unavailable"))

    def run() -> None:
        with pytest.raises(LogError):
            retries.ask(job, job_code, 10**6, 60.0)

    thread = threading.Thread(target=run)
    thread.start()
    assert attempt.wait(10)
    retries.close()
    thread.join(10)
    assert not thread.is_alive()


def _result(control: ThreadWorker, job: Callable[[], Any]) -> Any:
    results: list[Any] = []
    control.submit(job, results.append)
    end = time.monotonic() + HANG_S
    while not results:
        control.completed()
        assert time.monotonic() < end
        time.sleep(0.005)
    return results[0]


def test_the_control_thread_asks_again_unless_the_call_forbids_it() -> None:
    again, once = ThreadWorker(), ThreadWorker(once=True)
    job, other = Job(2), Job(1)
    assert _result(again, job) == "done"
    assert again.retries.asked_again == {"_TRANSPORT": 2}
    assert isinstance(_result(once, other), LogError)
    assert (other.asked, once.retries.asked_again) == (1, {})
    for control in (again, once):
        control.close(5.0)


def test_a_job_that_ends_by_a_mistake_is_answered_and_the_mistake_raised() -> None:
    worker, results = ThreadWorker(), list[Any]()

    def job() -> None:
        raise FileNotFoundError("ca.pem")

    def raises() -> bool:
        try:
            worker.completed()
        except FileNotFoundError:
            return True
        return False

    worker.submit(job, results.append)
    until(raises, "the mistake")
    [error] = results
    assert isinstance(error, LogError)
    assert (error.failure.cause, error.failure.code) == ("unexpected", "FileNotFoundError")
    assert worker.pending == 0
    assert _result(worker, lambda: "the next one") == "the next one"
    worker.close(5.0)


def test_what_is_repeated_goes_on_after_a_mistake() -> None:
    worker, results, calls = ThreadWorker(), list[Any](), count()

    def job() -> str:
        if next(calls):
            return "done"
        raise OSError("once")

    with worker.repeated(job, results.append, 0.001):
        until(lambda: len(results) > 1, "the next time")
    assert isinstance(results[0], LogError) and results[1] == "done"
    worker.close(5.0)


class _Admin:
    """Of kafka-python, as far as it is asked here."""

    def __init__(self, *answers: Exception | None, topics: tuple[dict[str, Any], ...] = ()) -> None:
        self._answers = [*answers]
        self._topics = topics
        self.is_closed = False

    def describe_topics(self, names: list[str] | None) -> list[dict[str, Any]]:
        return [topic for topic in self._topics if names is None or topic["name"] in names]

    def delete_records(self, _: object) -> None:
        answer = self._answers.pop(0)
        if answer is not None:
            raise answer

    def close(self) -> None:
        self.is_closed = True


def answering(calls: AdminCalls, *answers: Exception | None, topics: tuple[dict[str, Any], ...] = ()) -> None:
    """From now on a cluster answers so, whichever client asks it."""
    admin = _Admin(*answers, topics=topics)
    calls._connected = lambda _: admin  # type: ignore[method-assign, assignment]


def test_calls_to_kafka_are_asked_again_and_counted() -> None:
    retries = Retries()
    admin = AdminCalls({}, retries)
    answering(admin, kafka_errors.NodeNotReadyError(), kafka_errors.RequestTimedOutError(), None)
    admin.trim("t", 0, 5, 10.0)
    assert retries.asked_again == {"_TRANSPORT": 1, "REQUEST_TIMED_OUT": 1}
    answering(admin, kafka_errors.UnknownBrokerIdError(1), None)  # a broker that has just come, or gone
    admin.trim("t", 0, 5, 10.0)
    assert retries.asked_again == {"_TRANSPORT": 2, "REQUEST_TIMED_OUT": 1}
    answering(admin, kafka_errors.TopicAuthorizationFailedError(), None)
    with pytest.raises(LogError, match="refused") as raised:
        admin.trim("t", 0, 5, 10.0)
    assert raised.value.failure.code == "TOPIC_AUTHORIZATION_FAILED", "the code is a name of the table"
    assert (retries.asked_again.total(), retries.given_up) == (3, {})
    admin.close(5.0)


@pytest.mark.parametrize(
    ("failure", "clients"),
    [
        (kafka_errors.KafkaConnectionError("the controller is gone"), 2),
        (kafka_errors.UnknownBrokerIdError(2), 2),
        (kafka_errors.RequestTimedOutError(), 1),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_a_client_that_reaches_no_broker_is_replaced(
    failure: Exception, clients: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would ask the broker that it took for the controller until that one is back. A broker's answer is one."""
    made: list[_Admin] = []

    def make(**_: object) -> _Admin:
        made.append(_Admin(*([None] if made else [failure, None])))
        return made[-1]

    monkeypatch.setattr("native_backend.log.kafka.admin.KafkaAdminClient", make)
    calls = AdminCalls({}, Retries())
    calls.trim("t", 0, 5, 10.0)
    assert [admin.is_closed for admin in made] == [True, False][-clients:]
    calls.close(5.0)
    assert all(admin.is_closed for admin in made)


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (FileNotFoundError(2, "No such file or directory", "ca.pem"), "unavailable"),
        (PermissionError(13, "Permission denied", "key.pem"), "unavailable"),
        (ssl.SSLError(9, "PEM lib"), "unavailable"),
        (KeyError("a mistake"), "unexpected"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_whatever_a_client_raises_is_a_failure_and_the_next_call_is_by_another_client(
    error: Exception, cause: Cause, monkeypatch: pytest.MonkeyPatch
) -> None:
    """kafka-python reads the files of its TLS settings at each connection: they may be in the middle of a change."""
    made: list[_Admin] = []

    def make(**_: object) -> _Admin:
        made.append(_Admin(None if made else error))
        return made[-1]

    monkeypatch.setattr("native_backend.log.kafka.admin.KafkaAdminClient", make)
    calls = AdminCalls({}, Retries())
    with pytest.raises(LogError) as raised:
        calls.trim("t", 0, 5, 10.0)
    assert (raised.value.failure.cause, raised.value.failure.code) == (cause, type(error).__name__)
    calls.trim("t", 0, 5, 10.0)
    assert [admin.is_closed for admin in made] == [True, False]
    calls.close(5.0)


def test_a_client_that_reaches_no_broker_leaves_no_thread() -> None:
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    name = f"c{port}"
    config = {"bootstrap_servers": [f"127.0.0.1:{port}"], "bootstrap_timeout_ms": 50, "client_id": name}
    calls = AdminCalls(config, Retries())
    with pytest.raises(LogError, match="unavailable"):
        calls.trim("t", 0, 5, 1.0)
    calls.close(HANG_S)
    assert [thread.name for thread in threading.enumerate() if name in thread.name] == []


def test_the_table_decides_what_is_asked_again_not_the_client() -> None:
    """kafka-python holds the first two, which a broker gives while it is fenced, for errors that stay."""
    retries = Retries()
    admin = AdminCalls({}, retries)
    answering(admin, kafka_errors.InvalidReplicationFactorError(), kafka_errors.BrokerNotAvailableError(), None)
    admin.trim("t", 0, 5, 10.0)
    assert retries.asked_again == {"INVALID_REPLICATION_FACTOR": 1, "BROKER_NOT_AVAILABLE": 1}
    answering(admin, kafka_errors.UnknownTopicOrPartitionError(), None)
    with pytest.raises(LogError, match="not-found"):
        admin.trim("t", 0, 5, 10.0)
    answering(admin, kafka_errors.IllegalArgumentError("a mistake of ours"), None)
    with pytest.raises(LogError, match="unexpected"):
        admin.trim("t", 0, 5, 10.0)
    assert retries.asked_again.total() == 2
    admin.close(5.0)


def topic(name: str, error: int = 0, leader: int = 1) -> dict[str, Any]:
    partitions = [] if error else [{"partition_index": 0, "leader_id": leader}]
    return {"name": name, "error_code": error, "topic_id": str(uuid.UUID(int=7)), "partitions": partitions}


def test_a_topic_without_a_leader_is_not_gone_nor_is_one_that_may_not_be_described() -> None:
    """Readers of a topic that is taken for gone end, and with them the links of its node."""
    admin = AdminCalls({}, Retries())
    denied = kafka_errors.TopicAuthorizationFailedError.errno
    topics = topic("led"), topic("waits", leader=-1), topic("gone", 3), topic("secret", denied)
    answering(admin, topics=topics)
    entries = admin.existing(["led", "waits", "gone", "secret"], 5.0)
    assert {name: entry is not None for name, entry in entries.items()} == {"led": True, "waits": True, "gone": False}
    assert set(admin.find_topics(["led", "waits", "gone", "secret"])) == {"led"}, "what can be used now"
    admin.close(5.0)
    with pytest.raises(LogError, match="closed"):
        admin.find_topics(["led"])
