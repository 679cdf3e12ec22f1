"""What a realm does by itself, or by command, and has its reason: nothing of it is named."""

from __future__ import annotations

from collections.abc import Callable

from native_backend.nodes.durable import Durable
from native_backend.nodes.node import Node
from native_backend.nodes.properties import Properties
from tests.reconciliation.variants.shared_realm import SharedRealm
from tests.reconciliation.world import World

Begin = Callable[[World, Node, str, int], Durable]


def honest(shared: SharedRealm) -> None:
    """What has its reason is not named."""
    honest_few(shared)
    for begin in (World.durable_again, World.durable):
        for kept_from in (0, 4_160):
            _made_again_far_behind(shared, begin, kept_from)


def honest_few(shared: SharedRealm) -> None:
    """The same, but for blocks of thousands of events."""
    world, run = shared.world, shared.run
    stale = world.queue("honest-stale")
    sent = run.publish(stale, 3, ttl="T1")
    run.journal(stale, "queue", "expired", [sent[0].eid], [0], False, "ttl")
    of_node = world.queue("honest-ttl", Properties(ttl_ms=1))
    sent = run.publish(of_node, 2)
    run.journal(of_node, "queue", "expired", [sent[1].eid], [0], False, "ttl")
    small = world.queue("honest-small", Properties(capacity_events=2))
    sent = run.publish(small, 3)
    run.note(small, "", "evicted", sent[0].eid, sent[0].eid, "capacity")
    orders, sent = shared.queue("honest-orders", 6)
    to = world.queue("honest-letters")
    shared.letters(orders, to, [sent[0].eid], [sent[0].eid])
    world.command("d4", "purge", orders)
    run.note(orders, "queue", "purge", sent[1].eid, sent[1].eid, "command d4")
    run.settle(orders, sent[2:3], "released")
    run.settle(orders, sent[2:3], "modified-failed")
    run.settle(orders, sent[2:3], "accepted")
    news = world.channel("honest-news")
    run.settle(news, run.publish(news, 2), "released", journal=False)  # without a durable: in no journal
    shared.at_end.append(lambda: world.project(orders, None, sent[0].eid))
    _full_and_sought(shared)
    _made_again(shared)
    _made_again_for_others(shared)
    _gone_twice(shared)
    _sought_and_gone(shared)


def _full_and_sought(shared: SharedRealm) -> None:
    """A command gives back what a queue of two messages had ended: it holds four."""
    world, run = shared.world, shared.run
    full = world.queue("honest-full", Properties(capacity_events=2, honour_capacity=True))
    sent = run.publish(full, 2)
    run.settle(full, sent, "accepted")
    run.publish(full, 2)
    world.command("d6", "seek", full)
    run.note(full, "queue", "seek", sent[0].eid, sent[0].eid, "command d6")


def _made_again(shared: SharedRealm) -> None:
    """A durable is deleted and made again under its name, the second time from the oldest event on, the third time from
    the newest; retention takes an event that the first two have ended. A snapshot of the first is left."""
    world, run, news, name = shared.world, shared.run, shared.world.channel("honest-again"), "app:again"
    sent = run.publish(news, 4)
    world.durable_again(news, name, 0)
    run.settle(news, sent[:3], "accepted", name)
    world.snapshot(news, name, sent[2].eid, [], world.journal_end)
    run.unsubscribe(news, name)
    world.durable_again(news, name, 0)
    run.settle(news, sent[:1], "released", name)
    run.settle(news, sent[:2], "accepted", name)
    run.unsubscribe(news, name)
    world.durable_again(news, name, sent[-1].eid + 1)
    run.settle(news, run.publish(news, 3)[:1], "accepted", name)
    shared.at_end.append(lambda: world.log.control.trim(news.topic, 0, sent[1].eid))


def _made_again_for_others(shared: SharedRealm) -> None:
    """The first durable has a selector, the second one none; it is given anew what was ended for the first."""
    world, run, news, name = shared.world, shared.run, shared.world.channel("honest-others"), "app:others"
    sent = run.publish(news, 3)
    world.durable(news, name, 0, selector="number > 1")
    run.journal(news, name, "filtered", [sent[0].eid], [0], False, "selector")
    run.settle(news, sent[1:2], "accepted", name)
    world.snapshot(news, name, sent[2].eid, [], world.journal_end)
    run.unsubscribe(news, name)
    world.durable_again(news, name, 0)
    run.settle(news, sent[:1], "accepted", name)


def _made_again_far_behind(shared: SharedRealm, begin: Begin, kept_from: int) -> None:
    """A block of EIDs and some of the next lie below the start of the third durable, which the first one has ended, and
    the second one some of it as well. Retention takes the events before `kept_from`. `begin`: `World.durable` is as the
    first release wrote it, without where in the journal the durable begins."""
    world, run, name = shared.world, shared.run, "app:behind"
    news = world.channel(f"honest-behind-{begin.__name__}-{kept_from}")
    begin(world, news, name, 0)
    sent = run.publish(news, 4_200)
    run.settle(news, sent[:4_180], "accepted", name)
    run.unsubscribe(news, name)
    begin(world, news, name, 0)
    run.settle(news, [*sent[5:6], *sent[4_150:4_170]], "accepted", name)
    run.unsubscribe(news, name)
    begin(world, news, name, sent[-1].eid + 1)
    run.settle(news, run.publish(news, 2)[:1], "accepted", name)
    shared.at_end.append(lambda: world.log.control.trim(news.topic, 0, sent[kept_from].eid))


def _gone_twice(shared: SharedRealm) -> None:
    """What the first durable of a name has ended is given back, and ended, by the second; then that is gone, too. The
    last end stands in one record with the deletion."""
    world, run, news, name = shared.world, shared.run, shared.world.channel("honest-gone"), "app:gone"
    world.durable_again(news, name, 0)
    sent = run.publish(news, 2)
    run.settle(news, sent[:1], "accepted", name)
    run.settle_and_unsubscribe(news, sent[1], name)
    world.durable_again(news, name, 0)
    run.settle(news, sent, "released", name)
    run.settle(news, sent, "accepted", name)
    run.unsubscribe(news, name)


def _sought_and_gone(shared: SharedRealm) -> None:
    """A command gives a durable anew what it had ended; then the durable is deleted."""
    world, run, news, name = shared.world, shared.run, shared.world.channel("honest-sought"), "app:sought"
    world.durable_again(news, name, 0)
    sent = run.publish(news, 2)
    run.settle(news, sent, "accepted", name)
    world.command("d5", "seek", news, durable=name)
    run.note(news, name, "seek", sent[0].eid, sent[0].eid, "command d5")
    run.settle(news, sent, "released", name)
    run.settle(news, sent, "accepted", name)
    run.unsubscribe(news, name)
