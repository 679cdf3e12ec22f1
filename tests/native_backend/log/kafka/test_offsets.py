"""Setting group offsets, on a stand-in for the admin client; on a real broker the contract suite does it."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from native_backend.log.kafka.offsets import GroupOffsets
from native_backend.log.port import METADATA_CHARACTERS_MAX, LogError
from native_backend.log.retry import Retries

NEVER = object()
PLACE = {("um.node.news", 0): (7, "realmgate1;3;0")}


class Admin:
    """Answers each call by the next of these: an error of the call, an error of the partition, None, or never."""

    def __init__(self, *answers: Any) -> None:
        self.answers = [*answers]
        self.asked: list[tuple[str, int, str, float]] = []

    def alter_consumer_group_offsets(self, wanted: Any, request_timeout: float) -> dict[str, Future[Any]]:
        [group] = wanted
        [place] = group.topic_partitions
        self.asked.append((group.group_id, place.offset, place.metadata, request_timeout))
        answer, future = self.answers.pop(0), Future[Any]()
        if isinstance(answer, KafkaException):
            future.set_exception(answer)
        elif answer is not NEVER:
            future.set_result(SimpleNamespace(topic_partitions=[SimpleNamespace(error=answer)]))
        return {group.group_id: future}


def offsets(admin: Admin) -> GroupOffsets:
    return GroupOffsets(lambda: admin, Retries())  # type: ignore[arg-type, return-value]


def test_what_is_asked() -> None:
    admin = Admin(None)
    offsets(admin).alter("group", PLACE, 5.0)
    [(group, offset, metadata, left_s)] = admin.asked
    assert (group, offset, metadata) == ("group", 7, "realmgate1;3;0")
    assert left_s > 60.0, "librdkafka must not give up before its own requests do"


@pytest.mark.parametrize("of_call", [True, False])
def test_what_passes_is_asked_again(of_call: bool) -> None:
    error = KafkaError(KafkaError.COORDINATOR_LOAD_IN_PROGRESS)
    admin = Admin(KafkaException(error) if of_call else error, None)
    offsets(admin).alter("group", PLACE, 5.0)
    assert len(admin.asked) == 2


@pytest.mark.parametrize(
    ("answer", "cause"),
    [
        (KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED), "refused"),
        (KafkaException(KafkaError(KafkaError.UNKNOWN_MEMBER_ID)), "unexpected"),
        (KafkaException(KafkaError(KafkaError._TIMED_OUT)), "unavailable"),
        (NEVER, "unavailable"),
    ],
)
def test_a_failure_is_returned(answer: Any, cause: str) -> None:
    with pytest.raises(LogError) as raised:
        offsets(Admin(*[answer] * 20)).alter("group", PLACE, 0.2)
    assert raised.value.failure.cause == cause


def test_metadata_that_kafka_would_not_keep_is_not_asked_for() -> None:
    admin = Admin()
    with pytest.raises(LogError, match="characters"):
        offsets(admin).alter("group", {("t", 0): (1, "x" * (METADATA_CHARACTERS_MAX + 1))}, 1.0)
    assert not admin.asked
