"""A gateway with its real server, on a real socket, in front of a real realm, embedded or on Kafka: scenarios written
for `ScriptedGateway` run on it. What a script answers there is brought about here: a grant is revoked, a node is full
or deleted, the log refuses.

Nodes have names of their own in each scenario. What cannot be brought about raises `ScriptedOnly`.
"""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from mappings import TableSet
from native_backend.clock import SystemClock
from native_backend.limits import RealmLimits
from native_backend.log.worker import Workers
from native_backend.nodes.admin import create_node, delete_node
from native_backend.nodes.metadata import realm_topic
from native_backend.nodes.metadata_writer import realm_metadata, set_properties
from native_backend.nodes.properties import Grant, Properties
from native_backend.nodes.words import NodeKind
from native_backend.realm import Realm
from tests.kit.patience import HANG_S, until
from tests.kit.realm.raised_mistakes import raise_mistakes
from tests.kit.realm.worlds import KafkaWorld, SqliteWorld
from tests.kit.wire import frames
from tests.kit.wire.filters import selector
from tests.kit.wire.peer import Peer
from tests.kit.wire.recorded_realm import RecordedRealm
from tests.kit.wire.scripted_gateway import ScriptedGateway

LIMITS = RealmLimits(metadata_interval_s=0.1)
ANOTHER_USER = (Grant("user:another", frozenset({"publish", "subscribe", "durable"})),)
_NUMBERS = itertools.count()


class ScriptedOnly(Exception):
    """Why that cannot be brought about on a real realm."""


class RecordedGateway(ScriptedGateway):
    """See the module's docstring."""

    realm: RecordedRealm  # type: ignore[assignment]

    def __init__(self, tables: TableSet, world: SqliteWorld | KafkaWorld, refuse: Refuse) -> None:
        self.prefix = f"um{uuid.uuid4().hex[:8]}"
        self.log = world.open()
        self.refuse = refuse
        self._fault: BaseException | None = None
        self._realm = Realm(world.open(), self.prefix, f"run-{self.prefix}", SystemClock(), Workers.threads(), LIMITS)
        raise_mistakes(self._realm)
        self._realm.open()
        super().__init__(tables, RecordedRealm(self._realm))  # type: ignore[arg-type]
        self.answers = _Answers(self)
        self.realm.answers = self.answers  # type: ignore[attr-defined]

    def fresh(self) -> RecordedGateway:
        """Nothing of the scenario before is left."""
        number = next(_NUMBERS)
        self.queue, self.channel = f"q{number}", f"c{number}"
        self.make(self.queue, "queue")
        self.make(self.channel, "channel")
        self.do(self.realm.forget)
        return self

    def make(self, name: str, kind: NodeKind) -> None:
        create_node(self.log, self.prefix, name, kind, SystemClock())
        self.until(lambda: self._realm.node(name) is not None)

    def stored(self, name: str) -> list[bytes]:
        """What is kept of a node, as it is in the log."""
        node = self.do(lambda: self._realm.node(name))
        first, end = self.log.control.bounds(node.topic, 0)
        return [
            value
            for value in self.log.control.read_range(node.topic, 0, first, end - first).values
            if value is not None
        ]

    def change(self, change: Callable[[Properties], Properties]) -> None:
        for name in (self.queue, self.channel):
            wanted = set_properties(self.log, self.prefix, name, change, SystemClock())
            if wanted is not None:
                self.until(lambda name=name, wanted=wanted: self._realm.node(name) == wanted)  # type: ignore[misc]

    def fail_retiring(self) -> None:
        raise ScriptedOnly("an acknowledgement is written to the journal until it is there")

    def fail_attach(self, answer: str, peer: Peer) -> Any:
        if answer == "selector-invalid":
            return selector("a = ")
        if answer == "already-subscribed":  # by the same link of another session
            again = frames.attach_receiver(frames.source(self.channel, 2), channel=1)
            peer.send(frames.begin(channel=1), again)
            peer.expect("begin")
            peer.expect("attach")
        else:
            self.answers["subscribe"] = answer
        return None

    def lose(self, answer: str) -> None:
        """Every subscription of the channel ends for that."""
        if answer not in ("access-denied", "not-found"):
            raise ScriptedOnly(f"nothing ends a subscription that runs with {answer}")
        self.answers["subscribe"] = answer

    def delete_durables(self) -> None:
        durables = [row for row in realm_metadata(self.log, self.prefix).durables.values() if row.node == self.channel]
        for durable in durables:
            self.do(partial(self.realm.delete_durable, durable))

    def topics(self, what: str) -> list[str]:
        """Where the log is asked to store something then."""
        if what == "subscribe":
            return [realm_topic(self.prefix)]
        nodes = self._realm.node(self.queue), self._realm.node(self.channel)
        return [node.topic for node in nodes if node is not None]

    def __enter__(self) -> RecordedGateway:
        super().__enter__()
        return self

    def close_realm(self) -> None:
        try:
            self._realm.close(10.0)
        except BaseException as error:
            self._fault = error

    def __exit__(self, *_: object) -> None:
        super().__exit__(*_)
        if self._fault is not None:
            raise self._fault


class Refuse:
    """A log that refuses what is stored in some topics: not for want of room or of a broker, but as it is. The embedded
    one has no such error."""

    def begin(self, topics: list[str]) -> None:
        raise ScriptedOnly("what SQLite refuses is capacity-reached, unavailable or indeterminate")

    def end(self) -> None:
        """Nothing was begun."""


class RefuseKafka(Refuse):
    """By a bound for how old a record may be when it comes: INVALID_TIMESTAMP.

    A broker shows a setting a moment before it goes by it, and takes settings over in their order. So a topic of its
    own gets the same bound behind the others, and is tried with an old record."""

    def __init__(self, bootstrap: str) -> None:
        self._admin = AdminClient({"bootstrap.servers": bootstrap})
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
        self._tried = f"refuse-{uuid.uuid4().hex[:8]}"
        self._admin.create_topics([NewTopic(self._tried, 1)])[self._tried].result(HANG_S)
        self._topics: list[str] = []

    def begin(self, topics: list[str]) -> None:
        self._topics = topics
        self._set(AlterConfigOpType.SET)

    def end(self) -> None:
        self._set(AlterConfigOpType.DELETE)
        self._topics = []

    def _set(self, operation: AlterConfigOpType) -> None:
        is_bound = operation == AlterConfigOpType.SET
        for topics in (self._topics, [self._tried]):
            self._alter(operation, topics)
            until(lambda topics=topics: all(self._shows(topic) == is_bound for topic in topics), "the setting")  # type: ignore[misc]
        until(lambda: self._refuses() == is_bound, "the broker to go by the setting")

    def _alter(self, operation: AlterConfigOpType, topics: list[str]) -> None:
        entry = ConfigEntry("message.timestamp.before.max.ms", "0", incremental_operation=operation)
        wanted = [ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry]) for topic in topics]
        for done in self._admin.incremental_alter_configs(wanted).values() if wanted else ():
            done.result(60)

    def _shows(self, topic: str) -> bool:
        [config] = self._admin.describe_configs([ConfigResource(ResourceType.TOPIC, topic)]).values()
        return bool(config.result(60)["message.timestamp.before.max.ms"].value == "0")

    def _refuses(self) -> bool:
        reports: list[KafkaError | None] = []
        self._producer.produce(self._tried, b"old", timestamp=1, on_delivery=lambda error, _: reports.append(error))
        self._producer.flush(HANG_S)
        [error] = reports
        assert error is None or error.code() == KafkaError.INVALID_TIMESTAMP, error
        return error is not None


class _Answers(dict[str, Any]):
    """`answers[WHAT] = ANSWER` brings it about that the realm answers so; `clear` mends it."""

    def __init__(self, gateway: RecordedGateway) -> None:
        super().__init__()
        self._gateway = gateway

    def __setitem__(self, what: str, answer: str) -> None:
        gateway = self._gateway
        if what == "settle" and answer != "done":  # on its way when the subscription ended
            gateway.do(lambda: gateway.realm.holds.add("lost"))
        if what == "post" and answer == "unexpected":
            raise ScriptedOnly("the log is not asked before the discharge, and that is what fails then (T-D2)")
        if what == "commit" and answer == "unexpected" and isinstance(gateway.refuse, RefuseKafka):
            raise ScriptedOnly(
                "the setting by which Kafka refuses a record there refuses the marker that ends its transaction, too"
            )
        if answer == "access-denied":
            gateway.change(lambda properties: replace(properties, acl=ANOTHER_USER))
        elif answer == "capacity-reached":
            with Peer(gateway.port) as peer:
                peer.stored(gateway.queue, frames.message(b"first"))
                gateway.change(lambda properties: replace(properties, capacity_events=1, honour_capacity=True))
                peer.publisher(gateway.queue)  # how full it is is known from the first message on
                peer.publish(frames.message(b"second"))
                peer.expect("disposition")
        elif answer == "unexpected":
            gateway.refuse.begin(gateway.topics(what))
        elif what == "settle" and answer == "not-found":
            gateway.delete_durables()
        elif answer == "not-found":
            if what != "subscribe":  # the message was on its way when the node was deleted
                gateway.do(lambda: gateway.realm.holds.add("deleted"))
            self._delete(gateway.channel if what == "subscribe" else gateway.queue)
        if what == "settle" and answer != "done":
            gateway.until(gateway.realm.has_lost)
        super().__setitem__(what, answer)

    def _delete(self, name: str) -> None:
        delete_node(self._gateway.log, self._gateway.prefix, name)
        self._gateway.until(lambda: self._gateway._realm.node(name) is None)

    def clear(self) -> None:
        answers = set(self.values())
        if answers & {"access-denied", "capacity-reached"}:
            self._gateway.change(lambda _: Properties())
        if "unexpected" in answers:
            self._gateway.refuse.end()
        if "not-found" in answers and "subscribe" in self:
            self._gateway.make(self._gateway.channel, "channel")
        super().clear()
