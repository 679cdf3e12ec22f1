"""What happens before and after a log loses the end of some of its topics, as generators: each prepares a realm, yields
what is to be lost (by topic and partition: where it ends then), and goes on. `test_truncated.py` runs them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import orjson

from native_backend.events.selection import Selection
from native_backend.journal.journal import journal_topic
from native_backend.journal.snapshot import state_topic
from native_backend.limits import RealmLimits
from native_backend.nodes.answers import Published, Settled
from native_backend.nodes.durable import QUEUE
from native_backend.nodes.node import Node
from native_backend.nodes.properties import Properties
from native_backend.shard.journal_ends import TRUNCATED
from native_backend.shard.truncation import ALARM
from native_backend.subscriptions.partitioned import by_partition, eids_of, packed_eid, partition_of
from native_backend.subscriptions.subscription import SubscriptionLost
from tests.contract.actions import create, entries, reaches, wide
from tests.kit.realm.fixtures import Start, bodies
from tests.kit.realm.realm_process import Consumer, RealmProcess

KEPT, LOST, FRESH = 10, 20, 30
ODD = Selection("odd", lambda values: [int(value) % 2 == 1 for value in values])
WIDTHS = (1, 2, 3)
Ends = dict[tuple[str, int], int]
Truncation = Iterator[Ends]


@dataclass
class Filled:
    """A node, and places of its events: those that are to stay, and those that are to be lost."""

    node: Node
    kept: list[int] = field(default_factory=list)
    lost: list[int] = field(default_factory=list)
    ends: dict[tuple[str, int], int] = field(default_factory=dict)

    def cut(self, part: Node) -> int:
        return self.ends[part.topic, part.partition]


def send(realm: RealmProcess, node: Node, count: int) -> list[int]:
    """As a publisher does: again, where the first answer is that no one knows. A broker that has lost what a producer
    sent last takes nothing more of that producer; the next one begins anew."""
    owner = object()
    realm.realm.publish(node, [b"key"] * count, bodies(count), owner)
    reply = realm.answer(Published, lambda answer: answer.owner is owner)
    if reply.answer == "indeterminate" and reply.native == "OUT_OF_ORDER_SEQUENCE_NUMBER":
        return realm.publish(node, bodies(count))
    eids = [*reply.eids]
    while len(eids) < count:
        assert reply.answer == "stored", reply
        reply = realm.answer(Published, lambda answer: answer.owner is owner)
        eids += reply.eids
    assert reply.answer == "stored", reply
    return eids


def publish(realm: RealmProcess, node: Node, count: int) -> list[int]:
    """So many events into each store, the same in all; their places, once they can be seen."""
    places: list[int] = []
    for part in node.parts:
        eids = send(realm, part, count)
        realm.until(partial(reaches, realm, part, eids[-1]), "all of it")
        places += [packed_eid(part.partition, eid) for eid in eids]
    return places


def filled(realm: RealmProcess, node: Node) -> Filled:
    load = Filled(node, publish(realm, node, KEPT))
    load.lost = publish(realm, node, LOST)
    for part in node.parts:
        first = min(place for place in load.lost if partition_of(place) == part.partition)
        load.ends[part.topic, part.partition] = eids_of([first])[0]
    return load


def acknowledge(consumer: Consumer, places: list[int]) -> None:
    for at in by_partition(places).values():
        consumer.acknowledge([places[index] for index in at])


def is_done(realm: RealmProcess, load: Filled) -> bool:
    """The durable `odd` has gone beyond what is to be kept."""
    return all(realm.state(part, "odd").low > load.cut(part) for part in load.node.parts)


def all_of(consumer: Consumer, count: int) -> list[int]:
    return sorted(consumer.receive(count))


def truncated(realm: RealmProcess) -> list[tuple[object, object]]:
    """What the journal notes: durable and store."""
    return sorted((entry["durable"], entry["store"]) for entry in entries(realm, "truncated"))


def notes_a_cut(record: dict[str, Any]) -> bool:
    """Earlier releases have to refuse it: they would end events by it."""
    return any(entry["operation"] == "truncated" for entry in record["entries"])


def alarm(realm: RealmProcess, name: str = ALARM) -> int:
    return realm.realm.metrics.alarms[name]


def ends(*nodes: Filled) -> Ends:
    return {where: end for node in nodes for where, end in node.ends.items()}


def after_a_loss(start: Start, ending: str) -> Truncation:
    """What is stored afterwards is given, and nothing again that was acknowledged."""
    first = start()
    queues = [filled(first, wide(first, "queue", count, name=f"queue{count}")) for count in WIDTHS]
    channels = [wide(first, "channel", count, name=f"channel{count}") for count in WIDTHS]
    subscribers = [
        (first.consumer(node, "durable", "all"), first.consumer(node, "durable", "odd", selection=ODD))
        for node in channels
    ]
    news = [filled(first, node) for node in channels]
    left: dict[str, list[int]] = {}
    for load in queues:
        consumer = first.consumer(load.node)
        consumer.receive(len(load.kept + load.lost))
        left[load.node.name] = load.kept[3::7]
        acknowledge(
            consumer, [eid for eid in load.kept + load.lost if eid not in left[load.node.name] and eid != load.lost[2]]
        )
    for load, (whole, odd) in zip(news, subscribers, strict=True):
        acknowledge(whole, all_of(whole, len(load.kept + load.lost)))
        acknowledge(odd, all_of(odd, len(load.kept + load.lost) // 2))
        first.until(partial(is_done, first, load), "the rest")
    first.close() if ending == "closed" else first.kill()
    yield ends(*queues, *news)

    second = start()
    fresh: dict[str, list[int]] = {load.node.name: publish(second, load.node, FRESH) for load in queues}
    for load in queues:
        expected = sorted(left[load.node.name] + fresh[load.node.name])
        consumer = second.consumer(load.node)
        assert all_of(consumer, len(expected)) == expected
        acknowledge(consumer, expected)
    for load in news:
        whole, odd = (
            second.consumer(load.node, "durable", "all"),
            second.consumer(load.node, "durable", "odd", selection=ODD),
        )
        fresh[load.node.name] = publish(second, load.node, FRESH)
        assert all_of(whole, FRESH * load.node.partitions) == fresh[load.node.name]
        assert all_of(odd, FRESH * load.node.partitions // 2) == fresh[load.node.name][1::2]
        acknowledge(whole, fresh[load.node.name])
        acknowledge(odd, fresh[load.node.name][1::2])
    noted = [(QUEUE, part.store) for load in queues for part in load.node.parts]
    noted += [(durable, part.store) for load in news for part in load.node.parts for durable in ("all", "odd")]
    assert truncated(second) == sorted(noted)
    assert all(record["v"] == (2 if notes_a_cut(record) else 1) for record in second.journal())
    assert alarm(second) >= LOST * len({part.store for load in queues + news for part in load.node.parts})
    second.kill()

    third = start()
    for load in queues:
        assert third.consumer(load.node).drain() == []
    for load in news:
        assert third.consumer(load.node, "durable", "all").drain() == []
        assert third.consumer(load.node, "durable", "odd", selection=ODD).drain() == []
    assert (alarm(third), truncated(third)) == (0, sorted(noted))


def while_it_is_served(start: Start, width: int) -> Truncation:
    """Links go on, but for one that has something of what was lost."""
    realm = start()
    queue = filled(realm, wide(realm, "queue", width, name="queue"))
    channel = wide(realm, "channel", width, name="channel")
    done, plain = realm.consumer(channel, "durable", "done"), realm.consumer(channel, "plain")
    news = filled(realm, channel)
    holder, browser = realm.consumer(queue.node), realm.consumer(queue.node, "browse")
    for consumer, load in ((done, news), (plain, news), (holder, queue), (browser, queue)):
        consumer.receive(len(load.kept + load.lost))
    acknowledge(done, news.kept + news.lost)
    left = queue.kept[::3]
    last = [max(place for place in queue.lost if partition_of(place) == at) for at in range(width)]
    acknowledge(holder, [place for place in queue.kept + queue.lost if place not in left + last])
    yield ends(queue, news)

    fresh = publish(realm, channel, FRESH)
    assert all_of(done, len(fresh)) == fresh, "a link that has nothing of what was lost goes on"
    assert all_of(plain, len(fresh)) == fresh
    acknowledge(done, fresh)
    fresh = publish(realm, queue.node, FRESH)
    lost = realm.answer(SubscriptionLost)
    assert (lost.subscription, lost.answer) == (holder.subscription, "indeterminate"), (
        "it had something of what was lost"
    )
    assert all_of(browser, len(fresh)) == fresh
    assert browser.drain() == []
    assert not browser.subscription.looking
    again = realm.consumer(queue.node)
    assert all_of(again, len(left + fresh)) == sorted(left + fresh)
    assert holder.settle("acknowledge", fresh[:1]) == "unexpected", "what it says of a lost event is of no other"
    acknowledge(again, left + fresh)
    assert [realm.state(part).unsettled for part in queue.node.parts] == [0] * width
    realm.kill()
    second = start()
    assert second.consumer(queue.node).drain() == []
    assert second.consumer(channel, "durable", "done").drain() == []


def a_reader_beyond_the_end(start: Start) -> Truncation:
    """It tells before anything of ours is stored: what another program stores there is given."""
    realm = start(RealmLimits(retry_interval_s=0.02))
    queue = filled(realm, wide(realm, "queue", 2, name="queue"))
    channel = wide(realm, "channel", 2, name="channel")
    plain = realm.consumer(channel, "plain")
    news = filled(realm, channel)
    consumer = realm.consumer(queue.node)
    consumer.receive(len(queue.kept + queue.lost))
    plain.receive(len(news.kept + news.lost))
    acknowledge(consumer, queue.kept + queue.lost)
    yield ends(queue, news)

    def noticed() -> bool:
        assert not consumer.take() + plain.take()
        return alarm(realm) >= 4 * LOST and all(
            realm.state(part).position == queue.cut(part) for part in queue.node.parts
        )

    realm.until(noticed, "what was lost")
    assert plain.settle("return", news.lost[-3:]) == "done", "there is nothing to be given again"
    other = RealmProcess(realm.world, f"{realm.prefix}x")
    expected = [
        [packed_eid(part.partition, eid) for part in load.node.parts for eid in other.append(part, bodies(FRESH))]
        for load in (queue, news)
    ]
    assert all_of(consumer, len(expected[0])) == expected[0]
    assert all_of(plain, len(expected[1])) == expected[1]


def stored_is_told_when_the_journal_knows(start: Start) -> Truncation:
    """A process that is killed before has told no one: else the next one would not see that something was lost."""
    first = start()
    queue = filled(first, wide(first, "queue", 1, name="queue"))
    consumer = first.consumer(queue.node)
    consumer.receive(KEPT + LOST)
    acknowledge(consumer, queue.kept + queue.lost)
    first.close()
    yield ends(queue)
    second = start()
    second.realm._truncations.timer.stop()  # no one looked before
    fresh = send(second, queue.node, LOST + FRESH)
    topic = journal_topic(second.prefix)
    noted = [orjson.loads(value) for value in second.log.control.read_range(topic, 0, 0, 1000).values if value]
    if second.realm.kind != "kafka":  # which shows what was committed a little late
        assert any(entry["operation"] == "truncated" for record in noted for entry in record["entries"])
    second.kill()
    assert start().consumer(queue.node).receive(LOST + FRESH) == fresh


def a_capacity(start: Start) -> Truncation:
    """A node counts what is left."""
    realm = start()
    limits = Properties(capacity_events=KEPT + LOST + 5, honour_capacity=True)
    queue = filled(realm, create(realm, "queue", limits))
    yield ends(queue)
    fresh = send(realm, queue.node, 1)
    send(realm, queue.node, LOST + 4)
    consumer = realm.consumer(queue.node)
    assert consumer.receive(KEPT + 1) == [*queue.kept, *fresh]


def a_dead_letter(start: Start) -> Truncation:
    """What was lost is no letter, and holds no one up."""
    realm = start()
    realm.create("dead")
    queue = filled(realm, create(realm, "queue", Properties(dead_letter="dead")))
    consumer = realm.consumer(queue.node)
    consumer.receive(KEPT + LOST)
    yield ends(queue)
    owner = consumer.start("dead-letter", queue.lost[5:6], reason="rejected")
    assert realm.answer(Settled, lambda settled: settled.owner is owner).answer != "done"
    assert realm.answer(SubscriptionLost).subscription is consumer.subscription
    again = realm.consumer(queue.node)
    assert again.receive(KEPT) == queue.kept
    fresh = send(realm, queue.node, FRESH)
    assert again.receive(FRESH) == fresh
    assert entries(realm, "dead-letter") == []


# -- the journal itself


def offsets(realm: RealmProcess, topic: str) -> list[int]:
    realm.journal()
    return realm.log.control.read_range(topic, 0, 0, 10_000).offsets


def a_journal(start: Start) -> Truncation:
    """What was acknowledged in the part that is lost, after the last snapshot, is given again: nothing else knows of
    it. What is acknowledged afterwards is not, though its records have offsets that snapshots and durables named."""
    first = start()
    queue, channel = first.create("orders"), first.create("news", "channel")
    early = first.consumer(channel, "durable", "early")
    eids = first.publish(queue, bodies(40))
    consumer = first.consumer(queue)
    consumer.receive(40)
    for eid in eids[:30]:
        consumer.acknowledge([eid])
    late = first.consumer(channel, "durable", "late")
    news = first.publish(channel, bodies(5))
    for reader in (early, late):
        reader.acknowledge(reader.receive(5))
    places = offsets(first, topic := journal_topic(first.prefix))
    first.close()
    yield {(topic, 0): places[10]}

    second = start()
    assert alarm(second, TRUNCATED) >= 20
    again = second.consumer(queue)
    assert again.receive(10) == eids[30:], "the snapshots of an orderly end have the rest"
    again.acknowledge(eids[30:35])
    more = second.publish(channel, bodies(5))
    for name in ("early", "late"):
        subscriber = second.consumer(channel, "durable", name)
        assert subscriber.receive(5) == more
        subscriber.acknowledge(more)
    assert offsets(second, topic)[-1] < places[-1], "below what was named before"
    second.kill()

    third = start()
    assert alarm(third, TRUNCATED) == 0
    assert third.consumer(queue).receive(5) == eids[35:]
    for name in ("early", "late"):
        assert third.consumer(channel, "durable", name).drain() == []
    assert news[0] < more[0]


def a_journal_while_it_is_written(start: Start) -> Truncation:
    """It costs nothing: what is known is written anew."""
    first = start()
    queue = first.create("orders")
    eids = first.publish(queue, bodies(40))
    consumer = first.consumer(queue)
    consumer.receive(40)
    for eid in eids[:30]:
        consumer.acknowledge([eid])
    places = offsets(first, topic := journal_topic(first.prefix))
    yield {(topic, 0): places[10]}
    consumer.acknowledge(eids[30:35])
    assert alarm(first, TRUNCATED) > 0
    there = range(places[10], places[20])
    first.until(lambda: any(at in there for at in named(first)), "a snapshot that names an offset that is there")
    first.kill()
    assert start().consumer(queue).receive(5) == eids[35:]


def a_snapshot_behind_the_note(start: Start) -> Truncation:
    """A release that does not know the note need not read it, though no consumer has opened the queue since."""
    first = start()
    queue = filled(first, wide(first, "queue", 1, name="queue"))
    consumer = first.consumer(queue.node)
    acknowledge(consumer, consumer.receive(len(queue.kept + queue.lost)))
    first.close()
    yield ends(queue)
    second = start()
    publish(second, queue.node, FRESH)
    note = offsets(second, journal_topic(second.prefix))[[*map(notes_a_cut, second.journal())].index(True)]
    second.until(lambda: max(named(second)) > note, "a snapshot behind the note")


def named(realm: RealmProcess) -> list[int]:
    """By each snapshot an offset of the journal."""
    values = realm.log.control.read_range(state_topic(realm.prefix), 0, 0, 1000).values
    return [orjson.loads(value)["journal"] for value in values if value]


TRUNCATIONS: dict[str, Callable[[Start], Truncation]] = {
    **{f"after_a_loss_{ending}": partial(after_a_loss, ending=ending) for ending in ("closed", "killed")},
    **{f"while_it_is_served_{width}": partial(while_it_is_served, width=width) for width in WIDTHS},
    **{
        truncation.__name__: truncation
        for truncation in (
            a_reader_beyond_the_end,
            stored_is_told_when_the_journal_knows,
            a_capacity,
            a_dead_letter,
            a_journal,
            a_journal_while_it_is_written,
            a_snapshot_behind_the_note,
        )
    },
}
