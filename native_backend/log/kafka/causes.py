"""What an error of Kafka means to the realm: error code -> `Cause`. Source: kafka.md section 7.

The table of native errors decides, whichever client raised the error. Both clients number the broker's errors alike;
librdkafka's own are negative, and kafka-python's own have no number: they get that of the same error of librdkafka.
What a client itself holds for worth asking again is not looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import cast

from confluent_kafka import KafkaError, KafkaException
from kafka import errors as kafka_python

from mappings.compiler.errors import IN_FORCE, Errors
from mappings.language import causes
from native_backend.log.port import Cause, Failure

CLOSED = Failure("unavailable", "the log is closed")


@lru_cache(maxsize=2)
def _codes(errors: Errors) -> tuple[Mapping[int, Cause], frozenset[int]]:
    """From the table of native errors: code -> cause, and what an admin call asks again."""
    by_code: dict[int, Cause] = {}
    again = set()
    for name, error in errors.codes["kafka"].items():
        code = getattr(KafkaError, name, None)
        if code is None:
            continue  # another librdkafka, which does not know it yet
        by_code[code] = cast(Cause, error.cause)
        if error.retry == "inside":
            again.add(code)
    return by_code, frozenset(again)


def causes_in_force() -> Mapping[int, Cause]:
    """Of every code that the table speaks of."""
    return _codes(IN_FORCE.errors)[0]


def is_retriable(code: int) -> bool:
    """An admin call that failed so is asked again."""
    return code in _codes(IN_FORCE.errors)[1]


def failure_of(error: KafkaError) -> Failure:
    """The failure that an error of confluent-kafka is."""
    return Failure(causes_in_force().get(error.code(), "unexpected"), error.str(), error.name())


def unsent(failure: Failure) -> Failure:
    """The failure of what was certainly not sent, or not asked to be committed."""
    return Failure(cast(Cause, causes.unsent(failure.cause)), failure.detail, failure.code)


def failure_in(exception: BaseException) -> Failure:
    """The failure that an exception of confluent-kafka carries. A fatal error that was raised while callbacks still ran
    comes wrapped in a SystemError, as its cause."""
    if isinstance(exception, SystemError) and exception.__cause__ is not None:
        return failure_in(exception.__cause__)
    error = exception.args[0] if isinstance(exception, KafkaException) else None
    return failure_of(error) if isinstance(error, KafkaError) else Failure("unexpected", str(exception))


_OF_THE_CLIENT: Mapping[type[kafka_python.KafkaError], int] = {
    kafka_python.Cancelled: KafkaError._TRANSPORT,
    kafka_python.CorrelationIdError: KafkaError._TRANSPORT,
    kafka_python.KafkaConnectionError: KafkaError._TRANSPORT,
    kafka_python.KafkaTimeoutError: KafkaError._TRANSPORT,  # a control call may be made twice
    kafka_python.MetadataEmptyBrokerList: KafkaError._ALL_BROKERS_DOWN,
    kafka_python.NodeNotReadyError: KafkaError._TRANSPORT,
    kafka_python.StaleMetadata: KafkaError.LEADER_NOT_AVAILABLE,
    kafka_python.TooManyInFlightRequests: KafkaError._QUEUE_FULL,
    kafka_python.UnknownBrokerIdError: KafkaError._TRANSPORT,  # it has just come or gone: metadata lack it
}
"""kafka-python's own errors that pass, as librdkafka numbers them."""


def control_code(error: kafka_python.KafkaError) -> int | None:
    """The number of an error of kafka-python in the table; None for a mistake in a call of ours."""
    code = getattr(error, "errno", None)
    return code if isinstance(code, int) else _OF_THE_CLIENT.get(type(error))


def is_of_the_client(error: kafka_python.KafkaError) -> bool:
    """No broker gave this answer."""
    return type(error) in _OF_THE_CLIENT


def control_failure_of(error: kafka_python.KafkaError) -> Failure:
    """The failure that an exception of kafka-python is."""
    code = control_code(error)
    if code is None:
        return Failure("unexpected", str(error), type(error).__name__)
    return Failure(causes_in_force().get(code, "unexpected"), str(error), KafkaError(code).name())


def delivery_failure_of(error: KafkaError) -> Failure:
    """The failure that a delivery report of a living producer carries.

    When a topic is deleted, librdkafka answers a record that waits in one of its partitions `_UNKNOWN_PARTITION`, or
    `_DESTROY` where the partition's own end came first: the partition was destroyed, not the producer."""
    if error.code() == KafkaError._DESTROY:
        error = KafkaError(KafkaError._UNKNOWN_PARTITION, error.str())
    return failure_of(error)
