"""The contract of the realm, continued: no peer waits for group offsets, though their coordinator gives no answer."""

from __future__ import annotations

from threading import Event
from typing import Any

import pytest

from native_backend.limits import RealmLimits
from native_backend.log.port import Failure, LogError
from tests.kit.realm.fixtures import Start, bodies, start, world
from tests.kit.realm.realm_process import RealmProcess

__all__ = ["start", "world"]  # fixtures
LIMITS = RealmLimits(projection_interval_s=0.02, window_bytes=1_000, chunk_bytes=100)


class Coordinator:
    """Group offsets that wait until it is back, and then were not set."""

    def __init__(self, realm: RealmProcess, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked, self.back = Event(), Event()
        monkeypatch.setattr(realm.log.control, "project", self._project)

    def _project(self, *_: Any) -> None:
        self.asked.set()
        self.back.wait(120.0)
        raise LogError(Failure("unavailable", "no answer"))


@pytest.mark.parametrize("world", ["sqlite", "kafka"], indirect=True)  # the others have one worker, and no time passes
def test_events_are_read_again_and_durables_begin_meanwhile(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    realm = start(LIMITS)
    orders, news = realm.create("orders"), realm.create("news", "channel")
    consumer = realm.consumer(orders)
    realm.publish(orders, bodies(200, 50))
    given = consumer.receive(200)
    coordinator = Coordinator(realm, monkeypatch)
    try:
        consumer.acknowledge(given[100:])
        realm.until(coordinator.asked.is_set, "group offsets are being set")
        consumer.settle("return", given[:5])
        assert consumer.receive(5) == given[:5], "they are not in memory any more"
        assert realm.consumer(news, "durable", "d").receive(0) == []
    finally:
        coordinator.back.set()
