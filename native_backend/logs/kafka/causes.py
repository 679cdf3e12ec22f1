"""What an error of Kafka means to the realm: error code -> `Cause`. Source: kafka.md section 7.

Both clients number the broker's errors alike; librdkafka's own are negative. Flags (`retriable`, `fatal`) belong to one
error object and are looked at where it is. May import: the standard library, the two clients, `mappings.causes`,
`mappings.errors`, `native_backend.log`.
"""

from __future__ import annotations

from typing import cast

from confluent_kafka import KafkaError, KafkaException
from kafka import errors as kafka_python

from mappings import causes
from mappings.errors import shipped_errors
from native_backend.log import Cause, Failure

CODES: dict[Cause, tuple[int, ...]] = {}  # from the table of native errors (mappings/errors.yaml)
_again: set[int] = set()
for _name, _error in shipped_errors().codes["kafka"].items():
    _cause, _code = cast(Cause, _error.cause), getattr(KafkaError, _name, None)
    if _code is None:
        continue  # another librdkafka, which does not know it yet
    CODES[_cause] = (*CODES.get(_cause, ()), _code)
    if _error.retry == "inside":
        _again.add(_code)
CAUSES: dict[int, Cause] = {code: cause for cause, codes in CODES.items() for code in codes}
TRANSIENT: frozenset[int] = frozenset(_again)  # a control call asks again


def failure_of(error: KafkaError) -> Failure:
    """The failure that an error of confluent-kafka is."""
    return Failure(CAUSES.get(error.code(), "unexpected"), error.str(), error.name())


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
