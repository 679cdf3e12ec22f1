"""What a realm does by itself, or by command, and has its reason: nothing of it is named."""

from __future__ import annotations

from native_backend.nodes.properties import Properties
from tests.reconciliation.variants.shared_realm import SharedRealm


def honest(shared: SharedRealm) -> None:
    """What has its reason is not named."""
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
