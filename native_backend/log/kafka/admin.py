"""Topics, trimming and what groups have, by kafka-python: an admin connection that shares no code with the data path.

One worker thread makes the calls, one after another; the caller waits for it up to its own deadline, so that a call
that overruns its time (it happens while Kafka is away) blocks no caller for longer. A call is made again where the
table of native errors says so.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as Overdue
from contextlib import suppress
from typing import Any, TypeVar

from confluent_kafka import KafkaError
from kafka import TopicPartition
from kafka import errors as kafka_errors
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient
from kafka.net.compat import KafkaNetClient

from native_backend.log.access_lists import AccessLists
from native_backend.log.kafka.acl import topic_access_lists
from native_backend.log.kafka.causes import CLOSED, control_code, control_failure_of, is_of_the_client, is_retriable
from native_backend.log.kafka.inspecting import inspect
from native_backend.log.kafka.settings import Config
from native_backend.log.port import Failure, Inspection, LogError, Positions, Topic, TopicSpec
from native_backend.log.retry import Retries

_LOG = logging.getLogger(__name__)
T = TypeVar("T")
IN_SYNC = "min.insync.replicas"
_SPREAD = 3  # replicas
_VALID_S = 300.0
RECORD_BYTES = "max.message.bytes"
_CLEAN = {"unclean.leader.election.enable": "false"}  # said, whatever the cluster's default is
KEPT = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1", **_CLEAN}
COMPACTED = {
    **_CLEAN,
    "cleanup.policy": "compact",
    "segment.ms": "600000",  # only closed segments are cleaned
    "min.cleanable.dirty.ratio": "0.1",
    "max.compaction.lag.ms": "3600000",
}


class AdminCalls:
    """Connects at the first call."""

    def __init__(self, config: Config, retries: Retries, reach: Callable[[float], None] = lambda _: None) -> None:
        """`reach` raises `LogError` when the cluster cannot be reached in so many seconds: it says better why not."""
        self._config = config
        self._retries = retries
        self._reach = reach
        self._admin: KafkaAdminClient | None = None
        self._validated_s, self._is_on_one = float("-inf"), False
        self._worker = ThreadPoolExecutor(1, "kafka-admin")

    def create_topics(self, specs: Sequence[TopicSpec], deadline_s: float = 10.0) -> list[Topic]:
        configs = {spec.name: COMPACTED if spec.compacted else KEPT for spec in specs}
        wanted: dict[str, dict[str, Any]] = {
            spec.name: {"num_partitions": spec.partitions, "replication_factor": -1, "configs": configs[spec.name]}
            for spec in specs
        }

        def create(admin: KafkaAdminClient) -> list[Topic]:
            missing = {name: wanted[name] for name in wanted.keys() - _describe(admin, list(wanted)).keys()}
            if missing:
                if self._wants_two(admin, missing):
                    missing = {
                        name: {**topic, "configs": {**configs[name], IN_SYNC: "2"}} for name, topic in missing.items()
                    }
                for answer in admin.create_topics(missing, raise_errors=False)["topics"]:
                    if answer["error_code"] not in (0, kafka_errors.TopicAlreadyExistsError.errno):
                        raise kafka_errors.for_code(answer["error_code"])(answer["error_message"])
            return self._await_topics(admin, list(wanted))

        topics = {topic.name: topic for topic in self._call(create, deadline_s)}
        return [topics[spec.name] for spec in specs]

    def _wants_two(self, admin: KafkaAdminClient, topics: dict[str, dict[str, Any]]) -> bool:
        """Whether the cluster would make three replicas, or more, of which one is enough to answer what is published:
        two are as good as free. With two replicas, a broker that is down would stop the topic. The cluster is asked
        now and then for a creation that it is not to carry out; of what we may not know it says nothing."""
        now_s = time.monotonic()
        if now_s - self._validated_s >= _VALID_S:
            validated = admin.create_topics(topics, validate_only=True, raise_errors=False)["topics"]
            answers = [topic for topic in validated if topic["error_code"] == 0]
            self._is_on_one = any(map(_is_on_one_broker, answers))
            self._validated_s = now_s if answers else float("-inf")
        return self._is_on_one

    def grow_topic(self, name: str, partitions: int, deadline_s: float = 10.0) -> None:
        def grow(admin: KafkaAdminClient) -> None:
            topic = self._await_topics(admin, [name])[0]
            if topic.partitions < partitions:
                with suppress(kafka_errors.InvalidPartitionsError):  # another process was faster
                    admin.create_partitions({name: partitions})
                if self._await_topics(admin, [name])[0].partitions < partitions:
                    raise kafka_errors.LeaderNotAvailableError("the partitions are not in the metadata yet")

        self._call(grow, deadline_s)

    def find_topics(self, names: Sequence[str], deadline_s: float = 10.0) -> dict[str, Topic]:
        return self._call(lambda admin: _describe(admin, list(names)), deadline_s) if names else {}

    def existing(self, names: Sequence[str], deadline_s: float) -> dict[str, Topic | None]:
        """By name, also topics of which a partition has no leader now; None: the cluster knows none of that name.
        What it says anything else of (that it may not be described) is left out: nothing is known of it."""
        return self._call(lambda admin: _existing(admin.describe_topics(list(names))), deadline_s)

    def topics(self, prefix: str, deadline_s: float = 10.0) -> dict[str, Topic]:
        listing = self._call(lambda admin: _describe(admin, None), deadline_s)
        return {name: listing[name] for name in sorted(listing) if name.startswith(prefix)}

    def delete_topics(self, names: Sequence[str], deadline_s: float = 10.0) -> None:
        def delete(admin: KafkaAdminClient) -> None:
            for answer in admin.delete_topics(list(names), raise_errors=False)["topics"]:
                if answer["error_code"] not in (0, kafka_errors.UnknownTopicOrPartitionError.errno):
                    raise kafka_errors.for_code(answer["error_code"])(answer.get("error_message"))

        self._call(delete, deadline_s)

    def trim(self, topic: str, partition: int, before: int, deadline_s: float = 10.0) -> None:
        """Deleting beyond the end is an error to Kafka: then everything up to the end goes (-1)."""
        place = TopicPartition(topic, partition)

        def trim(admin: KafkaAdminClient) -> None:
            try:
                admin.delete_records({place: before})
            except kafka_errors.OffsetOutOfRangeError:
                admin.delete_records({place: -1})

        self._call(trim, deadline_s)

    def projected(self, group: str, deadline_s: float = 10.0) -> Positions:
        """confluent-kafka ends the metadata with a NUL, in every commit: that is no part of it."""
        entries = self._call(lambda admin: admin.list_group_offsets(group).get(group, {}), deadline_s)
        return {
            (place.topic, place.partition): (entry.offset, (entry.metadata or "").rstrip("\0"))
            for place, entry in entries.items()
            if entry.offset >= 0
        }

    def forget(self, group: str, deadline_s: float = 10.0) -> None:
        def delete(admin: KafkaAdminClient) -> None:
            answer = admin.delete_groups([group])[group]
            if answer not in ("OK", kafka_errors.GroupIdNotFoundError.__name__):
                raise getattr(kafka_errors, answer, kafka_errors.UnknownError)(group)

        self._call(delete, deadline_s)

    def record_bytes_max(self, topics: Sequence[str], deadline_s: float = 10.0) -> dict[str, int]:
        """Without the topics that are not there, or whose settings may not be read."""

        def ask(admin: KafkaAdminClient) -> dict[str, int]:
            wanted = [ConfigResource(ConfigResourceType.TOPIC, topic, {RECORD_BYTES: None}) for topic in topics]
            settings = admin.describe_configs(wanted, config_filter="all").get("topic", {})
            read = {topic: configs[RECORD_BYTES] for topic, configs in settings.items() if RECORD_BYTES in configs}
            return {topic: int(setting["value"]) for topic, setting in read.items()}

        return self._call(ask, deadline_s)

    def certain_copies(self, topic: str, deadline_s: float = 10.0) -> int:
        """Replicas may be fewer than are demanded to be in sync: then nothing is stored at all."""

        def ask(admin: KafkaAdminClient) -> int:
            wanted = [ConfigResource(ConfigResourceType.TOPIC, topic, {IN_SYNC: None})]
            configs = admin.describe_configs(wanted, config_filter="all").get("topic", {}).get(topic, {})
            if IN_SYNC not in configs:  # the client raises nothing
                raise kafka_errors.TopicAuthorizationFailedError(f"the settings of {topic} may not be read")
            [described] = admin.describe_topics([topic])
            return min(int(configs[IN_SYNC]["value"]), len(described["partitions"][0]["replica_nodes"]))

        return self._call(ask, deadline_s)

    def inspect(self, topics: Sequence[str], deadline_s: float = 10.0, *, whole: bool = True) -> Inspection:
        return self._call(lambda admin: inspect(admin, topics, whole=whole), deadline_s)

    def access_lists(self, deadline_s: float = 10.0) -> AccessLists:
        """Every access list entry about topics. Needs Describe on the cluster."""
        return self._call(topic_access_lists, deadline_s)

    def close(self, deadline_s: float = 3.0) -> None:
        def close() -> None:
            if self._admin is not None:
                self._admin.close()

        closing = self._worker.submit(close)
        self._worker.shutdown(wait=False)
        try:
            closing.result(deadline_s)
        except Overdue:  # the worker still hangs in an earlier call; it ends with the process
            return

    def _call(self, ask: Callable[[KafkaAdminClient], T], deadline_s: float) -> T:
        deadline = time.monotonic() + deadline_s
        try:
            future = self._worker.submit(self._ask, ask, deadline)
        except RuntimeError as error:  # a thread that looks now and then may be late
            raise LogError(CLOSED) from error
        try:
            return future.result(deadline_s + 0.1)
        except Overdue as error:
            future.cancel()
            raise LogError(Failure("unavailable", f"no answer within {deadline_s} s")) from error
        except LogError:
            raise
        except Exception as error:
            raise LogError(_failure_of(error)) from error

    def _ask(self, ask: Callable[[KafkaAdminClient], T], deadline: float) -> T:
        return self._retries.call(lambda: self._attempt(ask, deadline), _code_of, deadline - time.monotonic())

    def _attempt(self, ask: Callable[[KafkaAdminClient], T], deadline: float) -> T:
        """kafka-python asks one broker to make and delete topics, the one that it took for the controller first, also
        when that one is gone for hours. So the next attempt is by another client, also where the client failed in a way
        of its own: what it still holds is not known."""
        admin = self._connected(deadline)
        try:
            return ask(admin)
        except Exception as error:
            if not isinstance(error, kafka_errors.KafkaError) or is_of_the_client(error):
                self._admin = None
                admin.close()
            raise

    def _connected(self, deadline: float) -> KafkaAdminClient:
        if self._admin is None:
            self._reach(max(deadline - time.monotonic(), 0.1))
            self._admin = _connect(self._config)
        return self._admin

    def _await_topics(self, admin: KafkaAdminClient, names: list[str]) -> list[Topic]:
        """Metadata shows a created topic a moment later; until then, ask again."""
        topics = _describe(admin, names)
        if len(topics) < len(names):
            raise kafka_errors.LeaderNotAvailableError("the topics are not in the metadata yet")
        return list(topics.values())


def _connect(config: Config) -> KafkaAdminClient:
    """One that reaches no broker in its time has begun a thread by then, and does not end it."""
    begun: list[KafkaNetClient] = []

    def begin(**settings: Any) -> KafkaNetClient:
        begun.append(KafkaNetClient(**settings))
        return begun[-1]

    try:
        return KafkaAdminClient(**config, kafka_client=begin)
    except Exception:
        for client in begun:
            client._net.close()
        raise


def _failure_of(error: Exception) -> Failure:
    """kafka-python reads the files of the TLS settings anew for each connection, and raises what the system says of
    them: they may be written at this moment, so it is worth asking again. All else is a mistake, its or ours."""
    if isinstance(error, kafka_errors.KafkaError):
        return control_failure_of(error)
    if isinstance(error, OSError):  # ssl.SSLError is one
        return Failure("unavailable", str(error), type(error).__name__)
    _LOG.error("a call to Kafka ended by a mistake", exc_info=error)
    return Failure("unexpected", str(error), type(error).__name__)


def _code_of(error: BaseException) -> str | None:
    """An unknown topic is not asked for again: the metadata has been read anew by then."""
    code = control_code(error) if isinstance(error, kafka_errors.KafkaError) else None
    return str(KafkaError(code).name()) if code is not None and is_retriable(code) else None


def _is_on_one_broker(topic: Mapping[str, Any]) -> bool:
    setting = (topic.get("configs") or {}).get(IN_SYNC) or {}
    enough, replicas = setting.get("value"), topic.get("replication_factor", -1)
    return bool(replicas >= _SPREAD and enough is not None and int(enough) < 2)


def _describe(admin: KafkaAdminClient, names: list[str] | None) -> dict[str, Topic]:
    """Topics that exist and have a leader in every partition: those that can be used now."""
    described = admin.describe_topics(names)
    led = {topic["name"] for topic in described if all(part["leader_id"] >= 0 for part in topic["partitions"])}
    return {name: topic for name, topic in _existing(described).items() if topic is not None and name in led}


def _existing(described: list[dict[str, Any]]) -> dict[str, Topic | None]:
    topics: dict[str, Topic | None] = {}
    for topic in described:
        name, error, partitions = topic["name"], topic["error_code"], topic["partitions"]
        if error == kafka_errors.UnknownTopicOrPartitionError.errno:
            topics[name] = None
        elif error == 0 and partitions:
            topics[name] = Topic(name, uuid.UUID(str(topic["topic_id"])).bytes, len(partitions))
    return topics
