"""A run on one queue and one durable of a channel, and the truth about its messages, kept apart from the realm.

`CountedRun.step` does something by chance and notes what became of each message. A message's name is its node and
place.
"""

from __future__ import annotations

import uuid
from random import Random

from confluent_kafka import Producer

from native_backend.events.message_counts import MessageCounts
from native_backend.log.port import Append, Appended
from native_backend.nodes.answers import Committed
from native_backend.nodes.node import Node
from native_backend.nodes.properties import Properties
from native_backend.nodes.words import Operation
from native_backend.realm import Posting
from native_backend.subscriptions.partitioned import packed_eid
from tests.contract.actions import create
from tests.kit.realm.realm_process import Consumer, RealmProcess
from tests.kit.realm.worlds import KafkaWorld

HOUR_MS = 3_600_000
EXPIRED_MS = 1


class CountedRun:
    """`fate` of each message: available, unsettled, delayed or ended."""

    def __init__(self, realm: RealmProcess, partitions: int, seed: int) -> None:
        self.random = Random(seed)
        self.realm = realm
        self.dead = realm.create("dead")
        properties = Properties(partitions=partitions, dead_letter="dead", redelivery_delay_ms=HOUR_MS)
        self.queue = create(realm, "orders", properties)
        self.channel = create(realm, "news", properties, "channel")
        realm.consumer(self.channel, "durable", "d").subscription.close()
        self.fates: dict[str, dict[int, str]] = {"orders": {}, "news": {}}
        self.kept = 0  # in the channel
        self.consumer: dict[str, Consumer] = {}
        self.has: dict[str, list[int]] = {"orders": [], "news": []}
        self.number = 0

    def step(self) -> None:
        random = self.random
        node = random.choice((self.queue, self.channel))
        step = random.choice(("publish", "publish", "commit", "stranger", "take", "take", "settle", "settle", "settle",
                             "reserve", "leave"))  # fmt: skip
        getattr(self, step)(node, random.choice(node.parts))

    def publish(self, node: Node, part: Node) -> None:
        marks = [self.random.choice(("", "", "", "later", "over")) for _ in range(self.random.randint(1, 12))]
        eids = self.realm.publish(part, [b"x"] * len(marks), [self._key(mark) for mark in marks])
        for eid, mark in zip(eids, marks, strict=True):
            self._new(node, part, eid, {"later": "delayed", "over": "ended"}.get(mark, "available"))

    def commit(self, node: Node, part: Node) -> None:
        count, owner = self.random.randint(1, 4), object()
        posting = Posting(part, [self._key("")] * count, [b"x"] * count)
        self.realm.realm.commit([], [posting], owner)
        answer = self.realm.answer(Committed, lambda answer: answer.owner is owner)
        assert answer.answer == "done"
        for eid in answer.offsets:
            self._new(node, part, eid, "available")

    def stranger(self, node: Node, part: Node) -> None:
        """Events that the gateway did not write; on Kafka also aborted ones, and marks of others' transactions."""
        world = self.realm.world
        if isinstance(world, KafkaWorld):
            self._by_kafka(world, node, part)
            return
        log, done = world.open(), list[int]()
        log.append(Append(part.topic, part.partition, [b"k"] * 3, [b"strange"] * 3))

        def stored() -> bool:
            for answer in log.poll():
                assert isinstance(answer, Appended) and answer.failure is None, answer
                done.extend(answer.offsets)
            return len(done) == 3

        self.realm.until(stored, "the stranger's events")
        log.close()
        for eid in done:
            self._new(node, part, eid, "available")

    def _by_kafka(self, world: KafkaWorld, node: Node, part: Node) -> None:
        offsets: list[int] = []
        producer = Producer({"bootstrap.servers": world.bootstrap, "transactional.id": uuid.uuid4().hex})
        producer.init_transactions(60)
        for commits in (False, True):
            producer.begin_transaction()
            for _ in range(2):
                heard = (lambda _, message: offsets.append(message.offset())) if commits else None
                producer.produce(part.topic, b"strange", b"k", part.partition, on_delivery=heard)
            assert producer.flush(60) == 0
            (producer.commit_transaction if commits else producer.abort_transaction)(60)
        assert len(offsets) == 2
        for eid in offsets:
            self._new(node, part, eid, "available")

    def take(self, node: Node, part: Node) -> None:
        consumer = self._consumer(node)
        for _ in range(20):
            self.realm.turn()
            for place in consumer.take(self.random.randint(1, 10)):
                assert self.fates[node.name][place] == "available"
                self.fates[node.name][place] = "unsettled"
                self.has[node.name].append(place)

    def settle(self, node: Node, _: Node) -> None:
        ways: list[tuple[Operation, bool, str]] = [
            ("acknowledge", False, "ended"),
            ("return", False, "available"),
            ("return", True, "delayed"),
            ("dead-letter", False, "ended"),
            ("discard", False, "ended"),
        ]
        operation, failed, fate = self.random.choice(ways)
        for place in self._some(node):
            reason = {"reason": "rejected"} if operation == "dead-letter" else {}
            assert self._consumer(node).settle(operation, [place], failed=failed, **reason) == "done"
            self.fates[node.name][place] = fate

    def reserve(self, node: Node, _: Node) -> None:
        """A transaction has them, and does not end."""
        for place in self._some(node):
            assert self._consumer(node).subscription.reserve([place])

    def leave(self, node: Node, _: Node) -> None:
        if node.name in self.consumer:
            self.consumer.pop(node.name).subscription.close()
            for place in self.has[node.name]:
                self.fates[node.name][place] = "available"
            self.has[node.name] = []

    def die(self, later: RealmProcess) -> None:
        """Another process goes on: what was unsettled is available again."""
        self.realm = later
        self.consumer, self.has = {}, {"orders": [], "news": []}
        for fates in self.fates.values():
            fates.update((place, "available") for place, fate in fates.items() if fate == "unsettled")

    def truth(self, node: Node) -> MessageCounts:
        fates = [*self.fates[node.name].values()]
        unsettled, delayed, available = (fates.count(fate) for fate in ("unsettled", "delayed", "available"))
        return MessageCounts(unsettled + delayed + available, available, unsettled, delayed)

    def letters(self) -> int:
        """Dead letters, as the log has them: they have no consumer."""
        log = self.realm.log
        first, end = log.control.bounds(self.dead.topic, 0)
        return len(log.control.read_range(self.dead.topic, 0, first, end - first + 1).offsets) if end > first else 0

    def _new(self, node: Node, part: Node, eid: int, fate: str) -> None:
        self.fates[node.name][packed_eid(part.partition, eid) if node.partitions > 1 else eid] = fate
        self.kept += node is self.channel and fate != "ended"

    def _key(self, mark: str) -> bytes:
        self.number += 1
        ttl = b"T%d" % EXPIRED_MS if mark == "over" else b""
        due = b";D%d" % (self.realm.clock.epoch_us() // 1000 + HOUR_MS) if mark == "later" else b""
        return b"1;basic;run;%d;1;4;%s;0;;0%s" % (self.number, ttl, due)

    def _consumer(self, node: Node) -> Consumer:
        if node.name not in self.consumer:
            named = "d" if node is self.channel else None
            mode = "durable" if named else "queue"
            self.consumer[node.name] = self.realm.consumer(node, mode, named)  # type: ignore[arg-type]
        return self.consumer[node.name]

    def _some(self, node: Node) -> list[int]:
        has = self.has[node.name]
        some = self.random.sample(has, min(len(has), self.random.randint(1, 6)))
        self.has[node.name] = [place for place in has if place not in some]
        return some
