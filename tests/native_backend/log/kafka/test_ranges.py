"""A reader of ranges whose consumer has lost all brokers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException

from native_backend.log.kafka import settings
from native_backend.log.kafka.login_errors import LoginErrors
from native_backend.log.kafka.ranges import RangeReader
from native_backend.log.port import LogError
from native_backend.log.retry import Retries
from tests.kit.patience import HANG_S, until
from tests.native_backend.log.kafka.metadata_proxy import MetadataProxy, broker_behind

LOOK_S = 0.5  # is a broker there?
UNTIL_LOST = 1 << 30  # how many answers it takes depends on which of the client's own come in between


class _Consumer:
    """Answers once it may."""

    def __init__(self, code: int | None) -> None:
        self.code, self.is_closed = code, False

    def list_topics(self, **_: Any) -> None:
        """It reaches the cluster."""

    def poll(self, _: float) -> None:
        """It has heard nothing."""

    def get_watermark_offsets(self, *_: Any) -> tuple[int, int]:
        if self.code is not None:
            raise KafkaException(KafkaError(self.code))
        return 3, 7

    def close(self) -> None:
        self.is_closed = True


@pytest.mark.parametrize(
    ("code", "consumers"),
    [
        (KafkaError._TRANSPORT, 2),
        (KafkaError._ALL_BROKERS_DOWN, 2),
        (KafkaError._TIMED_OUT, 2),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, 1),
    ],
)
def test_a_consumer_that_reaches_no_broker_is_replaced(code: int, consumers: int) -> None:
    made: list[_Consumer] = []

    def make() -> Any:
        made.append(_Consumer(None if made else code))
        return made[-1]

    reader = RangeReader(make, LoginErrors(), Retries())
    with pytest.raises(LogError):
        reader.bounds("t", 0, 0.1)
    made[0].code = None
    assert reader.bounds("t", 0, 10.0) == (3, 7)
    assert [consumer.is_closed for consumer in made] == [True, False][-consumers:]
    reader.close()
    assert all(consumer.is_closed for consumer in made)


def test_a_consumer_whose_login_is_refused_is_closed() -> None:
    errors = LoginErrors()

    class Refused(_Consumer):
        def list_topics(self, **_: Any) -> None:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))

        def poll(self, _: float) -> None:
            errors.on_error(KafkaError(KafkaError._AUTHENTICATION, "wrong password"))

    made: list[Refused] = []

    def make() -> Any:
        made.append(Refused(None))
        return made[-1]

    reader = RangeReader(make, errors, Retries())
    for _ in range(2):
        with pytest.raises(LogError, match="refused"):
            reader.reach(HANG_S)
    assert [consumer.is_closed for consumer in made] == [True, True]


class _Late(_Consumer):
    """Its leader knows the topic when it was asked `times` times; the other brokers do, or not (`is_listed`). Like the
    real one it remembers what it missed, until it asks for the topic."""

    def __init__(self, code: int, times: int, *, is_listed: bool) -> None:
        super().__init__(code)
        self.times, self.is_listed, self.remembers = times, is_listed, False

    def list_topics(self, topic: str = "", *_: Any, **__: Any) -> Any:
        self.remembers = False
        return SimpleNamespace(topics={topic: SimpleNamespace(error=None)} if self.is_listed else {})

    def get_watermark_offsets(self, *_: Any) -> tuple[int, int]:
        self.times -= not self.remembers
        self.remembers = True
        self.code = self.code if self.times >= 0 else None
        return super().get_watermark_offsets()


@pytest.mark.parametrize("code", [KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC])
@pytest.mark.parametrize(
    ("is_listed", "is_new", "is_deleted", "is_there"),
    [
        (True, False, False, True),
        (False, True, False, True),
        (False, True, True, False),
        (False, False, False, False),
    ],
)
def test_a_leader_that_does_not_know_a_topic_yet_is_asked_again(
    code: int, is_listed: bool, is_new: bool, is_deleted: bool, is_there: bool
) -> None:
    consumer: Any = _Late(code, 3, is_listed=is_listed)
    reader = RangeReader(lambda: consumer, LoginErrors(), Retries())
    if is_new:
        reader.expect(["t", "u"])
    if is_deleted:
        reader.forget(["t"])
    if is_there:
        assert reader.bounds("t", 0, HANG_S) == (3, 7)
    else:
        with pytest.raises(LogError, match="not-found"):
            reader.bounds("t", 0, HANG_S)
        assert consumer.times == 2, "it is asked once"
    reader.close()


@pytest.fixture
def proxy(tmp_path: Path) -> Iterator[MetadataProxy]:
    proxy = MetadataProxy()
    broker = broker_behind(proxy, tmp_path / "kafka")
    yield proxy
    broker.stop()
    proxy.close()


def test_brokers_that_were_all_fenced_for_a_moment_are_found_again(proxy: MetadataProxy) -> None:
    """Without recovery of its own, a consumer that was answered with no brokers never finds them again; with it, one of
    some does."""
    errors = LoginErrors()
    config = settings.ranges(f"127.0.0.1:{proxy.port}", {"metadata.recovery.strategy": "none"}, errors.on_error)
    made: list[Consumer] = []

    def make() -> Consumer:
        made.append(Consumer(config))
        return made[-1]

    reader = RangeReader(make, errors, Retries())
    reader.reach(HANG_S)
    proxy.hides = UNTIL_LOST
    until(lambda: _is_lost(made[0]), "the consumer has no broker")
    proxy.hides = 0
    with pytest.raises(LogError):
        reader.bounds("__consumer_offsets", 0, 2.0)
    with pytest.raises(LogError, match="not-found"):
        reader.bounds("no-such-topic", 0, HANG_S)
    assert len(made) == 2, "the cluster has answered the next one"
    reader.close()


def _is_lost(consumer: Consumer) -> bool:
    """It has no broker to ask any more. One that is slow, or answers without brokers (`_PARTIAL`), was asked."""
    try:
        consumer.list_topics(timeout=LOOK_S)
    except KafkaException as error:
        return error.args[0].code() in (KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN)
    return False
