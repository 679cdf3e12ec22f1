"""A topic without a leader is there: nobody who reads or publishes is told otherwise."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from native_backend.log import Topic
from native_backend.logs.kafka.control import _describe
from native_backend.logs.kafka.watch import Watch

ID = uuid.uuid4()


class Admin:
    """Answers as kafka-python does."""

    def __init__(self, error_code: int, *leaders: int) -> None:
        partitions = [{"leader_id": leader, "error_code": 0 if leader >= 0 else 5} for leader in leaders]
        self._topic = {"name": "t", "topic_id": str(ID), "error_code": error_code, "partitions": partitions}

    def describe_topics(self, names: list[str] | None) -> list[dict[str, Any]]:
        return [self._topic]


@pytest.mark.parametrize(
    ("admin", "is_there", "is_led"),
    [
        (Admin(0, 1, 2), True, True),
        (Admin(0, 1, -1), True, False),
        (Admin(5, -1), True, False),
        (Admin(3), False, False),
        (Admin(29), False, False),
    ],
    ids=["led", "one partition is not", "topic says so", "unknown", "not authorized"],
)
def test_a_topic_is_there_with_or_without_leaders(admin: Any, is_there: bool, is_led: bool) -> None:
    assert ("t" in _describe(admin, ["t"])) == is_there
    assert ("t" in _describe(admin, ["t"], led=True)) == is_led


def test_its_readers_are_not_told_that_it_is_gone() -> None:
    admins: list[Any] = [Admin(0, 1), Admin(0, -1), Admin(5, -1), Admin(3)]

    def describe(names: list[str]) -> dict[str, Topic]:
        return _describe(admins[0], names)

    watch = Watch(describe)
    sight = watch.open("t", 0)
    try:
        while len(admins) > 1:
            watch._look([sight])
            assert sight.failure is None
            del admins[0]
        watch._look([sight])
        assert sight.failure is not None and sight.failure.cause == "not-found"
    finally:
        watch.stop(2.0)
