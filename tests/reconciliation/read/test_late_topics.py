"""A broker that has not heard of a topic yet, or knows the one before: it is asked again before the topic is missed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from reconciliation.read import offsets

OLD, NEW = "0" * 31 + "1", "0" * 31 + "2"
FOUND = {"error_code": 0, "partitions": [{"partition_index": 0, "leader_id": 1}], "authorized_operations": ["ALL"]}
UNKNOWN = {"error_code": 3, "partitions": [], "topic_id": "0" * 32}
DENIED = {"error_code": 29, "partitions": [], "topic_id": "0" * 32}


class Broker:
    """It answers what is scripted for a topic, one after the other, and then the last again and again."""

    def __init__(self, script: dict[str, list[dict[str, Any]]]) -> None:
        self.asked: list[list[str]] = []
        self._script = script

    def describe_topics(self, names: Iterable[str]) -> list[dict[str, Any]]:
        self.asked.append(sorted(names))
        answers = {name: self._script[name] for name in self.asked[-1]}
        return [{"name": name, **(left.pop(0) if len(left) > 1 else left[0])} for name, left in answers.items()]


def known(monkeypatch: pytest.MonkeyPatch, broker: Broker, ids: dict[str, str]) -> dict[str, str]:
    """Ids of the topics that are there."""
    monkeypatch.setattr(offsets, "KafkaConsumer", lambda **_: None)
    monkeypatch.setattr(offsets, "KafkaAdminClient", lambda **_: broker)
    monkeypatch.setattr(offsets, "LATE_S", 0.3)
    monkeypatch.setattr(offsets, "_LOOK_S", 0.001)
    return {name: topic.id for name, topic in offsets._Cluster({}).known(ids).items()}


def test_one_that_was_just_made_is_no_topic_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    late = [UNKNOWN, UNKNOWN, FOUND | {"topic_id": NEW}]
    broker = Broker({"a": [FOUND | {"topic_id": OLD}], "b": late})
    assert known(monkeypatch, broker, {"a": OLD, "b": NEW}) == {"a": OLD, "b": NEW}
    assert broker.asked == [["a", "b"], ["b"], ["b"]], "what is there is not asked for again"


def test_one_that_was_just_made_again_is_not_taken_for_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = Broker({"a": [FOUND | {"topic_id": OLD}, UNKNOWN, FOUND | {"topic_id": NEW}]})
    assert known(monkeypatch, broker, {"a": NEW}) == {"a": NEW}


def test_what_stays_gone_or_another_is_so(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = Broker({"gone": [UNKNOWN], "other": [FOUND | {"topic_id": OLD}], "any": [FOUND | {"topic_id": OLD}]})
    assert known(monkeypatch, broker, {"gone": NEW, "other": NEW, "any": ""}) == {"other": OLD, "any": OLD}


def test_one_that_we_may_not_look_at_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = Broker({"a": [DENIED]})
    assert known(monkeypatch, broker, {"a": NEW}) == {"a": ""} and len(broker.asked) == 1
