"""A shard's transactions over a producer that does not do as it should."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from native_backend.log.kafka.batches import BatchSizes
from native_backend.log.kafka.transactions import PAUSE_MAX_S, PAUSE_MIN_S, REFUSED_S, CommitPause, Transactions, claim
from native_backend.log.port import LogError, Transacted, Write
from tests.kit.patience import HANG_S


class FakeMessage:
    def __init__(self, offset: int) -> None:
        self._offset = offset

    def offset(self) -> int:
        return self._offset


class SlowProducer:
    """A transactional producer whose commit ends as it is told, or not before it is let go."""

    def __init__(self, ending: BaseException | None) -> None:
        self._ending = ending
        self.aborted = 0

    def begin_transaction(self) -> None: ...
    def purge(self) -> None: ...
    def close(self) -> None: ...

    def produce(self, *_args: object, on_delivery: Callable[[Any, Any], None], headers: object = None) -> None:
        on_delivery(None, FakeMessage(3))

    def flush(self, _timeout: float) -> int:
        return 0

    def commit_transaction(self, _timeout: float) -> None:
        if self._ending is not None:
            raise self._ending

    def abort_transaction(self, _timeout: float) -> None:
        self.aborted += 1


def outcome(transactions: Any) -> Transacted:
    transactions.submit([Write("t", 0, b"k", b"v")], "me")
    deadline = time.monotonic() + HANG_S
    while not (answers := transactions.poll()):
        assert time.monotonic() < deadline
        time.sleep(0.001)
    answer: Transacted = answers[0]
    return answer


def test_a_commit_without_an_answer_is_in_doubt_and_the_shard_must_be_claimed_again() -> None:
    transactions: Any = Transactions("s", [SlowProducer(KafkaException(KafkaError(KafkaError._TIMED_OUT)))])  # type: ignore[list-item]
    first, second = outcome(transactions), outcome(transactions)
    assert first.failure is not None
    assert second.failure is not None
    assert (first.failure.cause, first.offsets) == ("indeterminate", [-1])
    assert second.failure.cause == "indeterminate", (
        "the one who hears `unavailable` tries again, and would do so for ever"
    )
    assert "claim it again" in second.failure.detail
    transactions.retire(5.0)


class StuckProducer(SlowProducer):
    """Neither its records are stored in time, nor can the transaction be aborted: the broker has gone."""

    def flush(self, _timeout: float) -> int:
        return 1

    def abort_transaction(self, _timeout: float) -> None:
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT))


def test_a_transaction_that_cannot_even_be_aborted_is_in_doubt() -> None:
    transactions: Any = Transactions("s", [StuckProducer(None)])  # type: ignore[list-item]
    answers = [outcome(transactions), outcome(transactions)]
    assert [answer.failure.cause for answer in answers if answer.failure] == ["indeterminate", "indeterminate"]
    transactions.retire(5.0)


def test_a_commit_that_must_be_aborted_is_certainly_not_stored() -> None:
    error = KafkaError(KafkaError._TIMED_OUT, "in time no more", False, False, True)
    producer = SlowProducer(KafkaException(error))
    transactions: Any = Transactions("s", [producer])  # type: ignore[list-item]
    answer = outcome(transactions)
    assert answer.failure is not None
    assert (answer.failure.cause, producer.aborted) == ("unavailable", 1)
    transactions.retire(5.0)


class DestroyedProducer(SlowProducer):
    """The partition of the one record goes, with its topic, while the record waits in it."""

    def produce(self, *_args: object, on_delivery: Callable[[Any, Any], None], headers: object = None) -> None:
        on_delivery(KafkaError(KafkaError._DESTROY), FakeMessage(-1))


def test_a_transaction_into_a_topic_that_goes_is_not_found() -> None:
    producer = DestroyedProducer(None)
    transactions: Any = Transactions("s", [producer])  # type: ignore[list-item]
    answer = outcome(transactions)
    assert answer.failure is not None
    assert (answer.failure.cause, producer.aborted) == ("not-found", 1)
    transactions.retire(5.0)


class ClaimedProducer(SlowProducer):
    """Claimed once these errors have been raised."""

    def __init__(self, *errors: KafkaError) -> None:
        super().__init__(None)
        self.errors = [*errors]

    def init_transactions(self, _timeout: float) -> None:
        if self.errors:
            raise KafkaException(self.errors.pop(0))


def test_the_table_decides_whether_a_claim_is_made_again() -> None:
    """A broker that is fenced for a moment gives the first two; the client says of neither that it passes."""
    passing = [KafkaError(KafkaError.NOT_COORDINATOR), KafkaError(KafkaError.BROKER_NOT_AVAILABLE)]
    claim("s", [ClaimedProducer(*passing)], BatchSizes(), 10.0).retire(5.0)  # type: ignore[list-item]
    held_for_passing = KafkaError(KafkaError.UNSUPPORTED_VERSION, "of another age", False, True)
    producer = ClaimedProducer(held_for_passing)
    with pytest.raises(LogError) as raised:
        claim("s", [producer], BatchSizes(), 10.0)  # type: ignore[list-item]
    assert (raised.value.failure.cause, producer.errors) == ("unexpected", [])


class SteadyProducer(SlowProducer):
    """Notes when a transaction begins, and refuses the first ones: they take 20 ms longer."""

    def __init__(self, refused: int) -> None:
        super().__init__(None)
        self._refused = refused
        self.begun: list[float] = []

    def begin_transaction(self) -> None:
        self.begun.append(time.monotonic())

    def flush(self, _timeout: float) -> int:
        if len(self.begun) <= self._refused:
            time.sleep(REFUSED_S)
        return 0


def test_the_broker_has_a_moment_after_each_commit() -> None:
    producer = SteadyProducer(0)
    transactions: Any = Transactions("s", [producer])  # type: ignore[list-item]
    answers = [outcome(transactions) for _ in range(10)]
    transactions.retire(5.0)
    assert all(0.0 < answer.rest_s <= PAUSE_MAX_S for answer in answers), "who gathers hears how long he may"
    gaps = [later - earlier for earlier, later in pairwise(producer.begun)]
    assert min(gaps) >= PAUSE_MIN_S


def test_two_producers_take_turns_so_that_none_waits_for_the_markers_of_the_other() -> None:
    first, other = SteadyProducer(0), SteadyProducer(0)
    transactions: Any = Transactions("s", [first, other])  # type: ignore[list-item]
    transactions._lanes[1].pause.seconds = transactions._lanes[0].pause.seconds = 0.2
    rests = [outcome(transactions).rest_s for _ in range(2)]
    transactions.retire(5.0)
    assert (len(first.begun), len(other.begun)) == (1, 1)
    assert other.begun[0] - first.begun[0] < 0.2
    assert rests[0] == 0.0, "the other one has rested"
    assert rests[1] > 0.0, "the first one has not"


def test_the_moment_grows_with_every_refusal_and_shrinks_again() -> None:
    pause = CommitPause()
    first = pause.seconds
    for _ in range(3):
        pause.learn(REFUSED_S)
    grown = pause.seconds
    assert grown > first
    for _ in range(50):
        pause.learn(REFUSED_S)
    assert pause.seconds == PAUSE_MAX_S
    for _ in range(10_000):
        pause.learn(0.002)
    assert pause.seconds == PAUSE_MIN_S
    producer = SteadyProducer(4)
    transactions: Any = Transactions("s", [producer])  # type: ignore[list-item]
    rests = [outcome(transactions).rest_s for _ in range(4)]
    transactions.retire(5.0)
    assert max(rests) > first
