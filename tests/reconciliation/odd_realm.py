"""A realm where everything odd but nothing wrong has happened."""

from __future__ import annotations

from tests.reconciliation.world import World


def fill(world: World) -> None:
    """Releases, rejections, a durable with a hole, odd names, a deleted node, a killed run, and a live one."""
    orders, prices = world.queue("orders"), world.channel("prices & more <b>/\u00fc")
    first = world.run()
    sent = first.publish(orders, 6)
    first.turn()
    first.settle(orders, sent[:3], "released")
    first.settle(orders, sent[:2], "accepted")
    first.settle(orders, sent[3:4], "rejected")
    first.settle(orders, sent[4:5], "accepted", cause="sent-settled")
    first.publish(prices, 2)
    started = first.publish(prices, 1)[0].eid
    sub = world.durable(prices, "app:news", started)
    copies = first.publish(prices, 3)
    first.settle(prices, copies[1:2], "accepted", "app:news")
    first.settle(prices, copies[2:], "released", journal=False)  # a subscriber without durable has it again
    first.note(orders, "queue", "weighed", sent[0].eid, sent[3].eid)  # of another release: it ends nothing
    gone = world.queue("gone")
    first.publish(gone, 2)
    first.delete(gone)
    first.close()
    first.attest()
    world.project(orders, None, sent[2].eid)
    world.project(prices, sub, started)

    killed = world.run()
    held = killed.publish(orders, 2)
    killed.number(1)  # dispatched, and never settled: low stays here
    killed.publish(orders, 1)
    killed.turn()
    killed.settle(orders, held[:1], "accepted", tell=False)
    killed.store(orders, killed.number(2))

    live = world.run()
    live.publish(orders, 1)
    live.turn()
    live.settle(orders, held[1:], "accepted", tell=False)
    live.store(orders, live.number(1))
