"""What the watch of topics tells the readers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from native_backend.log.kafka import watch as watching
from native_backend.log.kafka.watch import TopicWatcher, WatchedTopic
from native_backend.log.port import Failure, LogError, Topic
from tests.kit.patience import until

OLD, NEW = (Topic("t", id_, 2) for id_ in (b"old", b"new"))
RETENTION = Failure("retention", "below the first record")


class Cluster:
    """What it says of the topics, and how often it was asked."""

    def __init__(self) -> None:
        self.says: dict[str, Topic | None] | Exception = {"t": OLD, "other": Topic("other", b"other", 1)}
        self.asked = 0

    def describe(self, names: list[str]) -> dict[str, Topic | None]:
        self.asked += 1
        if isinstance(self.says, Exception):
            raise self.says
        return {name: topic for name, topic in self.says.items() if name in names}


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    monkeypatch.setattr(watching, "INTERVAL_S", 0.01)
    return Cluster()


@pytest.fixture
def sight(cluster: Cluster) -> Iterator[WatchedTopic]:
    """Of a reader whose topic was seen."""
    watch = TopicWatcher(cluster.describe)
    topic = watch.open("t", 1)
    watch.open("other", 0)
    until(lambda: topic.id == b"old", "the first look")
    yield topic
    watch.stop(10.0)


def looked(cluster: Cluster) -> None:
    calls = cluster.asked
    until(lambda: cluster.asked > calls + 2, "two looks more")


@pytest.mark.parametrize("says", [None, Topic("t", b"old", 1)], ids=["gone", "smaller"])
def test_a_topic_that_is_gone_ends_its_reader(cluster: Cluster, sight: WatchedTopic, says: Topic | None) -> None:
    cluster.says = {"t": says}
    until(lambda: sight.failure is not None, "the failure")
    assert sight.failure is not None and sight.failure.cause == "not-found"


def test_a_topic_that_was_made_again_ends_its_reader(cluster: Cluster, sight: WatchedTopic) -> None:
    cluster.says = {"t": NEW}
    until(lambda: sight.failure is not None, "the failure")
    assert sight.failure is not None and "made again" in sight.failure.detail


@pytest.mark.parametrize(
    "says",
    [{}, LogError(Failure("unavailable", "away")), FileNotFoundError("ca.pem")],
    ids=["of the topic", "of any", "by a mistake"],
)
def test_where_nothing_is_known_a_reader_goes_on(
    cluster: Cluster, sight: WatchedTopic, says: dict[str, Topic | None] | Exception
) -> None:
    """Its partition has no leader for a moment, the topic may not be described, or the cluster is away."""
    sight.suspicion = RETENTION
    cluster.says = says
    looked(cluster)
    assert sight.failure is None
    cluster.says = {"t": OLD}
    until(lambda: sight.failure is RETENTION, "what was suspected of the same topic")
