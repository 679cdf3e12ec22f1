"""A queue is created although a broker does not know its topic yet."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from native_backend.clock import SystemClock
from native_backend.log.open import open_embedded
from native_backend.log.port import Failure, LogError
from native_backend.nodes import admin
from native_backend.nodes.admin import create_node
from tests.kit.realm.steered_clock import SteeredClock


def test_a_topic_that_a_broker_does_not_know_yet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(open_embedded(tmp_path / "realm")) as log:
        known, answers = log.control.bounds, ["not-found", "not-found", ""]

        def stale(topic: str, partition: int, deadline_s: float = 1.0) -> tuple[int, int]:
            if topic == "um.node.orders" and (cause := answers.pop(0)):
                raise LogError(Failure("not-found", cause))
            return known(topic, partition, deadline_s)

        monkeypatch.setattr(log.control, "bounds", stale)
        assert create_node(log, "um", "orders", "queue", SystemClock()).name == "orders"
        assert not answers


@pytest.mark.parametrize(("cause", "looks"), [("not-found", 3), ("refused", 1)])
def test_it_ends_when_waiting_does_not_help(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cause: str, looks: int
) -> None:
    with closing(open_embedded(tmp_path / "realm")) as log:
        clock, known, asked_for = SteeredClock(SystemClock()), log.control.bounds, list[str]()

        def gone(topic: str, partition: int, deadline_s: float = 1.0) -> tuple[int, int]:
            if not topic.startswith("um.node."):
                return known(topic, partition, deadline_s)
            asked_for.append(topic)
            clock.lapse(admin.CONTROL_S / 2)
            raise LogError(Failure(cause, "no such topic"))  # type: ignore[arg-type]

        monkeypatch.setattr(log.control, "bounds", gone)
        with pytest.raises(LogError, match="no such topic"):
            create_node(log, "um", "orders", "queue", clock)
        assert len(asked_for) <= looks
