"""What an error of Kafka means to the realm: error code -> `Cause`. Source: kafka.md section 7.

Both clients number the broker's errors alike; librdkafka's own are negative. Flags (`retriable`, `fatal`) belong to one
error object and are looked at where it is. May import: the standard library, the two clients, `native_backend.log`.
"""

from __future__ import annotations

from confluent_kafka import KafkaError, KafkaException
from kafka import errors as kafka_python

from native_backend.log import Cause, Failure

CODES: dict[Cause, tuple[int, ...]] = {
    "not-found": (
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError._UNKNOWN_TOPIC,
        KafkaError._UNKNOWN_PARTITION,
        100,  # UNKNOWN_TOPIC_ID
    ),
    "too-large": (
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError.RECORD_LIST_TOO_LARGE,
        KafkaError.OFFSET_METADATA_TOO_LARGE,
    ),
    "refused": (
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        KafkaError.SASL_AUTHENTICATION_FAILED,
        KafkaError._AUTHENTICATION,
    ),
    "fenced": (KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH, 90),  # 90: PRODUCER_FENCED
    "indeterminate": (
        KafkaError._MSG_TIMED_OUT,
        KafkaError._TIMED_OUT,
        KafkaError._PURGE_INFLIGHT,
        KafkaError._FATAL,
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.NETWORK_EXCEPTION,
        KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ),
    "unavailable": (
        *(5, 6, 8, 9, 14, 15, 16, 19, 41, 51, 56, 70, 71, 72, 74, 75, 78, 80, 83, 84, 88, 89, 103),
        KafkaError._TRANSPORT,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._PURGE_QUEUE,
        KafkaError._QUEUE_FULL,
        KafkaError._RESOLVE,
    ),
    "retention": (KafkaError.OFFSET_OUT_OF_RANGE, KafkaError._AUTO_OFFSET_RESET),
}
CAUSES: dict[int, Cause] = {code: cause for cause, codes in CODES.items() for code in codes}
TRANSIENT: frozenset[int] = frozenset({*CODES["unavailable"], 7, 13, 20})  # a control call asks again


def failure_of(error: KafkaError) -> Failure:
    """The failure that an error of confluent-kafka is."""
    return Failure(CAUSES.get(error.code(), "unexpected"), error.str(), error.name())


def failure_in(exception: BaseException) -> Failure:
    """The failure that an exception of confluent-kafka carries. A fatal error that was raised while callbacks still ran
    comes wrapped in a SystemError, as its cause."""
    if isinstance(exception, SystemError) and exception.__cause__ is not None:
        return failure_in(exception.__cause__)
    error = exception.args[0] if isinstance(exception, KafkaException) else None
    return failure_of(error) if isinstance(error, KafkaError) else Failure("unexpected", str(exception))


def control_failure_of(error: kafka_python.KafkaError) -> Failure:
    """The failure that an exception of kafka-python is."""
    code = getattr(error, "errno", None)
    default: Cause = "unavailable" if is_transient(error) else "unexpected"
    return Failure(CAUSES.get(code, default) if isinstance(code, int) else default, str(error), type(error).__name__)


def is_transient(error: BaseException) -> bool:
    """Worth asking again inside the deadline. An unknown topic is not: the metadata has been read anew by then."""
    return (
        isinstance(error, kafka_python.KafkaError)
        and bool(getattr(error, "retriable", False))
        and not isinstance(error, kafka_python.UnknownTopicOrPartitionError)
    )
