"""A topic that the realm makes takes no record that lies on one of three brokers alone, whatever the cluster's default
is; on real brokers in test_leaderless.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from native_backend.log.kafka.admin import KEPT, AdminCalls
from native_backend.log.port import TopicSpec
from native_backend.log.retry import Retries


class _Admin:
    """A cluster that makes so many replicas, of which so many are enough."""

    def __init__(self, **validated: Any) -> None:
        self._validated = validated
        self.made: dict[str, Mapping[str, Any]] = {}

    def describe_topics(self, names: list[str]) -> list[dict[str, Any]]:
        partition = {"leader_id": 1}
        known = {"error_code": 0, "topic_id": "00000000-0000-0000-0000-000000000001", "partitions": [partition]}
        return [{"name": name, **known} for name in names if name in self.made]

    def create_topics(
        self, topics: Mapping[str, Mapping[str, Any]], validate_only: bool = False, raise_errors: bool = True
    ) -> dict[str, Any]:
        assert not raise_errors
        if not validate_only:
            self.made.update(topics)
        return {"topics": [{"name": name, "error_code": 0, "error_message": "", **self._validated} for name in topics]}

    def close(self) -> None:
        """Nothing is open."""


def setting(enough: str) -> dict[str, dict[str, str]]:
    return {"min.insync.replicas": {"value": enough}}


@pytest.mark.parametrize(
    ("validated", "wanted"),
    [
        ({"replication_factor": 3, "configs": setting("1")}, "2"),
        ({"replication_factor": 5, "configs": setting("1")}, "2"),
        ({"replication_factor": 3, "configs": setting("2")}, None),
        ({"replication_factor": 3, "configs": setting("3")}, None),
        ({"replication_factor": 2, "configs": setting("1")}, None),
        ({"replication_factor": 1, "configs": setting("1")}, None),
        ({"replication_factor": -1, "configs": None}, None),
        ({}, None),
        ({"replication_factor": 3, "configs": setting("1"), "error_code": 36}, None),
    ],
    ids=str,
)
def test_two_brokers_have_what_is_answered_as_stored(
    validated: dict[str, Any], wanted: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin = _Admin(**validated)
    monkeypatch.setattr("native_backend.log.kafka.admin.KafkaAdminClient", lambda **_: admin)
    calls = AdminCalls({}, Retries())
    calls.create_topics([TopicSpec("t")])
    more = {} if wanted is None else {"min.insync.replicas": wanted}
    assert admin.made["t"]["configs"] == {**KEPT, **more}
    calls.close(5.0)
