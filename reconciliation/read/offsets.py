"""Offset ranges and group positions of a realm on Kafka, asked with kafka-python: an auditor that shares no client code
with what it audits. Spark cannot read group offsets.

Order of the questions, so that races are harmless (each later answer may only know *more*):

1. end of the journal, as it was before (`Extent.journal_before`): the outcome records that it notes lie below 2;
2. end of outcomes: what an outcome record claims was stored before it was written, so all that follows must hold it;
3. metadata, then the topics of its nodes by name and id;
4. first kept offsets: a trim after this makes a read fail loudly (and is retried), never look like a loss;
5. group positions and the end of state: both are computed from the journal, so they claim nothing beyond 6;
6. end of the journal: each entry speaks of an event that was stored before, so 7 must hold it;
7. ends of events and tables;
8. metadata again: a node whose topic was not there (3) may have been deleted by then, a node or durable that 5 or 6
   names have been made.

Ends are last stable offsets (read_committed), waited for until they reach what was written when they were asked for.
Where one does not within `PATIENCE_S`, a transaction is open: what lies between cannot be read yet. Metadata of groups
may carry a trailing NUL that librdkafka adds: it is stripped.
Errors: `SourceError`.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.errors import KafkaError
from kafka.protocol.consumer import IsolationLevel, OffsetSpec

from reconciliation.model.errors import SourceError
from reconciliation.model.ranges import GONE, REQUIRED, SINGLE, Extent, GroupPosition, Range, Unread
from reconciliation.read.known_nodes import KnownNodes
from reconciliation.read.open_transactions import why_open

TIMEOUT_MS = 10_000
PATIENCE_S = 25.0
"""A gateway's transaction takes milliseconds; one that a killed gateway left is aborted by Kafka within this time."""
LATE_S = 5.0
"""So much later than others a broker may hear of a topic that was made."""
_LOOK_S = 0.1
BOOTSTRAP_TIMEOUT_MS = 5_000
_SAME_NAME = {
    "security.protocol": "security_protocol",
    "sasl.mechanism": "sasl_mechanism",
    "sasl.mechanisms": "sasl_mechanism",
    "sasl.username": "sasl_plain_username",
    "sasl.password": "sasl_plain_password",
    "ssl.ca.location": "ssl_cafile",
    "ssl.certificate.location": "ssl_certfile",
    "ssl.key.location": "ssl_keyfile",
    "ssl.key.password": "ssl_password",
}


def client_settings(client: Mapping[str, str]) -> dict[str, Any]:
    """The gateway's librdkafka settings in kafka-python's words, as far as they say how to get in."""
    settings: dict[str, Any] = {ours: client[theirs] for theirs, ours in _SAME_NAME.items() if theirs in client}
    if "security_protocol" in settings:
        settings["security_protocol"] = settings["security_protocol"].upper()
    if "ssl.endpoint.identification.algorithm" in client:
        settings["ssl_check_hostname"] = client["ssl.endpoint.identification.algorithm"] != "none"
    return settings


Ends = dict[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class _Topic:
    """One that exists. `why`: it may not be read; `down`: partitions that cannot be now."""

    id: str
    partitions: tuple[int, ...]
    down: tuple[int, ...] = ()
    why: str = ""


def extent_of(bootstrap: str, prefix: str, client: Mapping[str, str]) -> Extent:
    """The ranges to read, in the order above."""
    settings = {
        "bootstrap_servers": bootstrap,
        "request_timeout_ms": TIMEOUT_MS,
        "bootstrap_timeout_ms": BOOTSTRAP_TIMEOUT_MS,
        **client_settings(client),
    }
    try:
        cluster = _Cluster(settings)
    except KafkaError as error:
        raise SourceError(f"no Kafka at {bootstrap} ({error}); is it running, and is realm.bootstrap right?") from error
    try:
        with closing(cluster):
            return _ask(cluster, prefix)
    except KafkaError as error:
        raise SourceError(f"Kafka at {bootstrap} did not answer: {error}") from error


def _ask(cluster: _Cluster, prefix: str) -> Extent:
    single = {kind: TopicPartition(f"{prefix}.{kind}", 0) for kind in SINGLE}
    topics = cluster.describe(place.topic for place in single.values())
    if not any(single[kind].topic in topics for kind in ("realm", "journal", "outcomes")):
        raise SourceError(
            f"Kafka has no realm with the prefix {prefix!r} (no topic {single['outcomes'].topic}); check realm.prefix"
        )
    topics = cluster.known(dict.fromkeys((single[kind].topic for kind in REQUIRED), ""), topics)
    places = _readable(topics)
    journal, outcomes, metadata, state = (
        [single[kind]] if single[kind] in places else [] for kind in ("journal", "outcomes", "realm", "state")
    )
    before = cluster.stable_ends(journal)
    ends, highs = cluster.settled_ends(outcomes)
    known = KnownNodes()
    for place in metadata:
        ends[place], highs[place] = cluster.read_on(known, place, 0)
    stores, ids = set(known.metadata.stores), {node.topic: node.topic_id.hex() for node in known.nodes}
    of_nodes = cluster.known(ids)
    topics |= of_nodes
    places |= _readable({name: topic for name, topic in of_nodes.items() if topic.id == ids[name]})
    firsts, positions = cluster.firsts(places), cluster.positions(prefix)
    for group in (state, journal, places):
        settled = cluster.settled_ends([place for place in group if place not in ends])
        ends, highs = ends | settled[0], highs | settled[1]
    known.durables.clear()
    for place in metadata:
        cluster.read_on(known, place, ends[place])
    grown = cluster.stable_ends([*outcomes, *journal])
    return Extent(
        tuple(Range(p.topic, p.partition, min(firsts[p], ends[p]), ends[p]) for p in sorted(places)),
        positions,
        {name: topic.id for name, topic in topics.items()},
        tuple(sorted((*_unread(topics, prefix), *cluster.pending(ends, highs)))),
        sum(before.values()),
        any(grown[place] > ends[place] for place in outcomes),
        frozenset(stores ^ set(known.metadata.stores)),
        frozenset(known.durables),
        any(grown[place] > ends[place] for place in journal),
    )


def _readable(topics: Mapping[str, _Topic]) -> set[TopicPartition]:
    return {
        TopicPartition(name, number)
        for name, topic in topics.items()
        for number in topic.partitions
        if not topic.why and number not in topic.down
    }


def _unread(topics: Mapping[str, _Topic], prefix: str) -> list[Unread]:
    """What the realm has to have and has not, and what may not be looked at."""
    missing = [topic for kind in REQUIRED if (topic := f"{prefix}.{kind}") not in topics]
    unread = [Unread(topic, None, GONE) for topic in missing]
    for name, entry in topics.items():
        if entry.why:
            unread.append(Unread(name, None, entry.why))
        unread += [
            Unread(name, number, "no broker leads this partition now: run again when one does") for number in entry.down
        ]
    return unread


class _Cluster:
    """The questions, each as one call. Raises KafkaError."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._consumer = KafkaConsumer(isolation_level="read_committed", enable_auto_commit=False, **settings)
        try:
            self._admin = KafkaAdminClient(**settings)
        except KafkaError:
            self._consumer.close()
            raise

    def close(self) -> None:
        self._consumer.close()
        self._admin.close()

    def describe(self, names: Iterable[str]) -> dict[str, _Topic]:
        """Those of the topics that exist, or may: one that we may not describe is named with what is missing."""
        wanted = sorted(set(names))
        return {
            described["name"]: topic
            for described in (self._admin.describe_topics(wanted) if wanted else [])
            if (topic := _described(described)) is not None
        }

    def known(self, ids: Mapping[str, str], described: dict[str, _Topic] | None = None) -> dict[str, _Topic]:
        """As `describe`, of topics that were made, with their ids (empty: any). A broker hears of a topic later than
        the one that has made it; so one that is not there, or is another one, is looked for again for a while.
        `described`: what `describe` gave of them, and of others, which stay in it."""
        topics = self.describe(ids) if described is None else described
        until_s = time.monotonic() + LATE_S
        while late := [name for name, topic_id in ids.items() if not _is_there(topics.get(name), topic_id)]:
            if time.monotonic() >= until_s:
                break
            time.sleep(_LOOK_S)
            topics = {name: topic for name, topic in topics.items() if name not in late} | self.describe(late)
        return topics

    def stable_ends(self, places: Iterable[TopicPartition]) -> Ends:
        return self._offsets(places, OffsetSpec.LATEST, IsolationLevel.READ_COMMITTED)

    def firsts(self, places: Iterable[TopicPartition]) -> Ends:
        return self._offsets(places, OffsetSpec.EARLIEST, IsolationLevel.READ_UNCOMMITTED)

    def _offsets(self, places: Iterable[TopicPartition], which: OffsetSpec, isolation: IsolationLevel) -> Ends:
        results = self._admin.list_partition_offsets(dict.fromkeys(sorted(places), which), isolation_level=isolation)
        return {place: result.offset for place, result in results.items()}

    def settled_ends(self, places: Iterable[TopicPartition]) -> tuple[Ends, Ends]:
        """Stable ends, as soon as they have reached what is written now (returned, too), or when patience has ended."""
        highs = self._offsets(places, OffsetSpec.LATEST, IsolationLevel.READ_UNCOMMITTED)
        ends = self.stable_ends(highs)
        until_s = time.monotonic() + PATIENCE_S
        while open_ := [place for place, end in ends.items() if end < highs[place]]:
            if time.monotonic() >= until_s:
                break
            time.sleep(_LOOK_S)
            ends |= self.stable_ends(open_)
        return ends, highs

    def pending(self, ends: Ends, highs: Ends) -> list[Unread]:
        """What lies behind a transaction that stays open."""
        return [
            Unread(place.topic, place.partition, why_open(self._admin, place, end), end, highs[place])
            for place, end in ends.items()
            if end < highs[place]
        ]

    def read_on(self, known: KnownNodes, place: TopicPartition, start: int) -> tuple[int, int]:
        """Metadata from `start` to its end; returns that, and what was written."""
        ends, highs = self.settled_ends([place])
        end = ends[place]
        self._consumer.assign([place])
        self._consumer.seek(place, max(start, self.firsts([place])[place]))
        until_s = time.monotonic() + PATIENCE_S
        while (at := self._consumer.position(place)) < end:
            for records in self._consumer.poll(timeout_ms=500).values():
                known.fold((row.offset, row.timestamp, row.key, row.value) for row in records if row.offset < end)
            if self._consumer.position(place) > at:
                until_s = time.monotonic() + PATIENCE_S
            elif time.monotonic() >= until_s:
                raise KafkaError(f"{place.topic} was read up to {at}, not to {end}")
        return end, highs[place]

    def positions(self, prefix: str) -> tuple[GroupPosition, ...]:
        names = sorted(_field(group, "group_id") for group in self._admin.list_groups())
        groups = [name for name in names if name.startswith((f"{prefix}.queue.", f"{prefix}.durable."))]
        offsets = self._admin.list_group_offsets(groups) if groups else {}
        return tuple(
            GroupPosition(group, place.topic, place.partition, commit.offset, (commit.metadata or "").rstrip("\0"))
            for group in groups
            for place, commit in sorted(offsets[group].items())
            if commit.offset >= 0
        )


_UNKNOWN, _DENIED = 3, 29  # error codes of Kafka's protocol


def _is_there(topic: _Topic | None, topic_id: str) -> bool:
    """One that we may not look at is not waited for."""
    return topic is not None and (bool(topic.why) or topic_id in ("", topic.id))


def _described(described: Mapping[str, Any]) -> _Topic | None:
    if described["error_code"] == _UNKNOWN:
        return None
    if described["error_code"] == _DENIED:
        return _Topic("", (), why="we may not look at this topic: grant Describe and Read on it")
    allowed = described.get("authorized_operations") or []
    denied = bool(allowed) and not {"READ", "ALL"} & set(allowed)
    numbers = tuple(sorted(part["partition_index"] for part in described["partitions"]))
    down = tuple(sorted(part["partition_index"] for part in described["partitions"] if part["leader_id"] < 0))
    return _Topic(
        UUID(str(described["topic_id"])).hex,
        numbers,
        down,
        "we may not read this topic: grant Read on it" if denied else "",
    )


def _field(group: Any, name: str) -> str:
    return str(group[name] if isinstance(group, dict) else getattr(group, name))
