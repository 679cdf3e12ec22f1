"""Settings of topics by which Kafka deletes or loses what is stored: they stop the start, or are a trouble while they
last."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pytest

from native_backend.limits import RealmLimits
from native_backend.log.port import Failure, Inspection, LogError, TopicState
from tests.kit.realm.realm_process import RealmProcess
from tests.kit.realm.worlds import SimulatedWorld

CLEAN = {"unclean.leader.election.enable": "false", "min.insync.replicas": "2"}
KEPT = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1", **CLEAN}
COMPACTED = {"cleanup.policy": "compact", **CLEAN}
Answers = Callable[[Sequence[str]], Inspection]


def is_compacted(topic: str) -> bool:
    return topic.rpartition(".")[2] in ("realm", "state", "tables")


def cluster(
    other: Mapping[str, Mapping[str, str]], *, unread: str = "-", brokers: int = 3, in_sync: int = 3
) -> Answers:
    """What such a cluster answers. `other`: settings that are not as the realm sets them, by the end of a topic."""

    def answers(topics: Sequence[str]) -> Inspection:
        states, denied = {}, set()
        for topic in topics:
            settings = dict(COMPACTED if is_compacted(topic) else KEPT)
            for ending, changed in other.items():
                settings |= changed if topic.endswith(f".{ending}") else {}
            if topic.endswith(f".{unread}"):
                denied.add(topic)
            else:
                states[topic] = TopicState(settings, 3, in_sync)
        return Inspection(brokers, "4.0", None, states, denied)

    return answers


@pytest.fixture
def realm() -> RealmProcess:
    return RealmProcess(SimulatedWorld("simulated", seed=7), "u")


def answer(realm: RealmProcess, answers: Answers, monkeypatch: pytest.MonkeyPatch) -> None:
    def inspect(topics: Sequence[str], deadline_s: float = 10.0, *, whole: bool = True) -> Inspection:
        assert not whole, "each minute, and there may be many partitions"
        return answers(topics)

    monkeypatch.setattr(realm.log.control, "inspect", inspect)


def troubles(realm: RealmProcess) -> dict[tuple[str, str], str]:
    return {(trouble.kind, trouble.about): trouble.detail for trouble in realm.realm.metrics.troubles}


@pytest.mark.parametrize("topic", ["journal", "state", "realm"])
def test_what_would_lose_the_journal_stops_the_start(
    realm: RealmProcess, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = "delete" if is_compacted(topic) else "compact"
    answer(realm, cluster({topic: {"cleanup.policy": wrong}}), monkeypatch)
    with pytest.raises(LogError, match=f"{topic}: cleanup.policy is {wrong}.*kafka-configs --alter") as raised:
        realm.open()
    assert raised.value.failure.cause == "invalid"


CASES = {
    "expires": ({"orders": {"retention.ms": "60000"}}, ("topic-deletes", "orders"), "retention.ms is 60000"),
    "compacted": ({"orders": {"cleanup.policy": "compact"}}, ("topic-deletes", "orders"), "cleanup.policy"),
    "own": ({"outcomes": {"retention.bytes": "9"}}, ("topic-deletes", ""), "retention.bytes is 9"),
    "unclean": ({"journal": {"unclean.leader.election.enable": "true"}}, ("topic-risks", ""), "unclean"),
    "refuses": (
        {"orders": {"message.timestamp.before.max.ms": "59000"}},
        ("topic-risks", "orders"),
        "is 59000: Kafka refuses what is older, also the mark that ends a transaction (kafka-configs --alter"
        " --entity-type topics --entity-name u.node.orders --add-config"
        " message.timestamp.before.max.ms=9223372036854775807)",
    ),
    "one copy": ({"orders": {"min.insync.replicas": "1"}}, ("topic-risks", "orders"), "on one broker only"),
}


@pytest.mark.parametrize("case", CASES)
def test_the_rest_is_a_trouble_until_it_is_set_back(
    realm: RealmProcess, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    other, place, words = CASES[case]
    answer(realm, cluster({}), monkeypatch)
    realm.open()
    realm.create("orders")
    answer(realm, cluster(other), monkeypatch)
    realm.until(lambda: {*troubles(realm)} == {place}, "the trouble")
    assert words in troubles(realm)[place]
    answer(realm, cluster({}), monkeypatch)
    realm.until(lambda: not troubles(realm), "its end")


def test_replicas_that_are_missing_are_a_trouble_and_one_broker_alone_has_none(
    realm: RealmProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer(realm, cluster({"journal": {"min.insync.replicas": "1"}}, brokers=1), monkeypatch)
    realm.open()
    for _ in range(200):
        realm.turn()
    assert not troubles(realm)
    answer(realm, cluster({}, in_sync=2), monkeypatch)
    realm.until(lambda: "2 of 3 replicas" in troubles(realm).get(("topic-risks", ""), ""), "the trouble")
    assert "and 6 more" in troubles(realm)["topic-risks", ""], "not a line for each topic"


@pytest.mark.parametrize("topic", ["journal", "orders"])
def test_settings_that_may_not_be_read_are_reported(
    realm: RealmProcess, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer(realm, cluster({}), monkeypatch)
    realm.open()
    realm.create("orders")
    answer(realm, cluster({}, unread=topic), monkeypatch)
    unread = ("topic-settings-unread", "")
    realm.until(lambda: f".{topic}" in troubles(realm).get(unread, ""), "the trouble")
    answer(realm, cluster({}), monkeypatch)
    realm.until(lambda: not troubles(realm), "its end")

    def refused(_: Sequence[str]) -> Inspection:
        raise LogError(Failure("refused", "no right to describe the cluster"))

    answer(realm, refused, monkeypatch)
    realm.until(lambda: "no right" in troubles(realm).get(unread, ""), "the trouble")


def test_all_topics_have_their_turn_a_few_in_a_look(monkeypatch: pytest.MonkeyPatch) -> None:
    realm = RealmProcess(SimulatedWorld("simulated", seed=7), "u", RealmLimits(settings_round_topics=4))
    looks: list[Sequence[str]] = []

    def noted(topics: Sequence[str]) -> Inspection:
        looks.append(topics)
        return cluster({})(topics)

    answer(realm, noted, monkeypatch)
    realm.open()
    for number in range(5):
        realm.create(f"n{number}")
    looks.clear()
    realm.until(lambda: len({topic for look in looks for topic in look}) == 14, "the round")
    assert max(map(len, looks)) <= 4
