"""Settings of topics by which Kafka deletes what the realm counts on, or may lose it with a broker.

`faults` judges one topic. Used by the realm while it serves, and by commands beside it. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from native_backend.log.port import TopicState

_KEEPS_ALL: Final = {"retention.ms": "-1", "retention.bytes": "-1"}
_BEFORE: Final = "message.timestamp.before.max.ms"
_BEFORE_LEAST_MS: Final = 3_600_000
_VITAL: Final = ("realm", "state", "journal")


@dataclass(frozen=True, slots=True)
class SettingFault:
    """`deletes`: Kafka deletes what is stored. `loses`: it may lose it with a broker, and nothing says so. `risks`:
    less is kept safe than could be, an adopted topic expires, or Kafka refuses what waited."""

    grade: Literal["deletes", "loses", "risks"]
    detail: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a topic is for. `adopted`: it was there before; its owner may mean it to expire."""

    compacted: bool = False
    adopted: bool = False


def is_vital(prefix: str, topic: str) -> bool:
    """Without what it has the realm gives out again what was acknowledged, or forgets its nodes."""
    return topic in {f"{prefix}.{name}" for name in _VITAL}


def faults(topic: str, state: TopicState, wanted: Wanted, brokers: int) -> Iterator[SettingFault]:
    """`brokers`: of the cluster."""
    yield from _deletes(topic, state.settings, wanted)
    if state.settings.get("unclean.leader.election.enable") == "true":
        words = f"{topic}: unclean.leader.election.enable is true: messages that were answered as stored may be lost"
        yield SettingFault("loses", words, f"{_alter(topic)} unclean.leader.election.enable=false")
    before_ms = state.settings.get(_BEFORE)
    if before_ms is not None and int(before_ms) < _BEFORE_LEAST_MS:
        words = f"{topic}: {_BEFORE} is {before_ms}: Kafka refuses what is older, also the mark that ends a transaction"
        yield SettingFault("risks", words, f"{_alter(topic)} {_BEFORE}=9223372036854775807")
    if state.in_sync < state.replicas:
        words = f"{topic}: {state.in_sync} of {state.replicas} replicas are in sync"
        yield SettingFault("risks", words, "start the brokers that are missing")
    if brokers > 1 and min(int(state.settings.get("min.insync.replicas", "1")), state.replicas) < 2:
        words = f"{topic}: what is answered as stored may be on one broker only"
        yield SettingFault("risks", words, "3 replicas, and kafka-configs --alter --add-config min.insync.replicas=2")


def _deletes(topic: str, has: Mapping[str, str], wanted: Wanted) -> Iterator[SettingFault]:
    policy = "compact" if wanted.compacted else "delete"
    if has.get("cleanup.policy") != policy:
        words = f"{topic}: cleanup.policy is {has.get('cleanup.policy')}, not {policy}"
        yield SettingFault("deletes", words, f"{_alter(topic)} cleanup.policy={policy}")
    for name, value in _KEEPS_ALL.items():
        if not wanted.compacted and has.get(name) != value:
            words = f"{topic}: {name} is {has.get(name)}: Kafka deletes messages that no consumer has had"
            yield SettingFault("risks" if wanted.adopted else "deletes", words, f"{_alter(topic)} {name}={value}")


def _alter(topic: str) -> str:
    return f"kafka-configs --alter --entity-type topics --entity-name {topic} --add-config"
