"""What became of a flight's records, by the producer's own codes."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError

from native_backend.log.kafka.flight import Flight
from native_backend.log.port import Append, Failure


def failures(code: int) -> list[Failure | None]:
    """Of two records, of which the second was not delivered."""
    flight = Flight(Append("t", 0, [b"k", b"k"], [b"v", b"w"]), 0, 2)
    flight.offsets += [7, -1]
    flight.errors.append((1, code, "as librdkafka has it"))
    return [answer.failure for answer in flight.land()]


@pytest.mark.parametrize("code", [KafkaError._UNKNOWN_PARTITION, KafkaError._DESTROY])
def test_a_record_in_a_partition_that_went_is_not_found(code: int) -> None:
    """librdkafka's two words for a record that waits in a partition whose topic is deleted."""
    assert failures(code) == [None, Failure("not-found", "as librdkafka has it", "_UNKNOWN_PARTITION")]


def test_other_codes_are_what_the_table_says() -> None:
    expected = Failure("indeterminate", "as librdkafka has it", "_MSG_TIMED_OUT")
    assert failures(KafkaError._MSG_TIMED_OUT) == [None, expected]
