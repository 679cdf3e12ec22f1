"""A random history of a realm: what gateways do, and now and then what none should do. A seed always gives the same.

history = History(world, random.Random(7), faults=2)
history.fill(60)
"""

from __future__ import annotations

import random
from collections.abc import Callable

from native_backend.nodes.node import Node
from native_backend.nodes.properties import Properties
from tests.reconciliation.variants.shared_realm import KEY
from tests.reconciliation.world import GatewayRun, Sent, World

STATES = ("accepted", "accepted", "accepted", "rejected", "released", "modified-failed")
ENDING = ("accepted", "rejected")
MANY = 4_200
"""More than a block of seqs or of EIDs."""
NEWS = "app:news"


class History:
    """`left`: by node, what was published there and not ended; `ended`: what was. `faults`: how many of the steps may
    do what has no reason. `shortens`: stores are trimmed, and a durable is made again under its name."""

    def __init__(self, world: World, rng: random.Random, *, faults: int, shortens: bool) -> None:
        self.world, self.rng, self.faults, self.shortens = world, rng, faults, shortens
        self.orders, self.letters = world.queue("orders"), world.queue("letters")
        self.small = world.queue("small", Properties(capacity_events=20))
        self.prices = world.channel("prices")
        self.left: dict[str, list[Sent]] = {node.name: [] for node in self.nodes}
        self.ended: dict[str, list[Sent]] = {node.name: [] for node in self.nodes}
        self.run: GatewayRun = world.run()
        world.durable(self.prices, NEWS, 0)
        self.commands = 0
        self.planted: list[str] = []

    @property
    def nodes(self) -> list[Node]:
        return [self.orders, self.letters, self.small, self.prices]

    def fill(self, steps: int) -> None:
        wrong = set(self.rng.sample(range(steps), self.faults))
        for step in range(steps):
            self._wrong() if step in wrong else self._right()
        if self.rng.random() < 0.7:
            self._close()

    def _right(self) -> None:
        steps: dict[Callable[[], object], int] = {
            self._publish: 8, self._settle: 10, self._turn: 8, self._attest: 3, self._kill: 1, self._close: 1,
            self._hold: 1, self._expire: 1, self._purge: 1, self._refuse: 1, self._unknown: 1,
            self._project: 1, self._evict: 1, self._untold: 1, self._again: int(self.shortens),
            self._trim: int(self.shortens),
        }  # fmt: skip
        self.rng.choices([*steps], [*steps.values()])[0]()

    def _node(self) -> Node:
        return self.rng.choice(self.nodes)

    def _durable(self, node: Node) -> str | None:
        return NEWS if node is self.prices else None

    def _publish(self) -> None:
        node, count = self._node(), MANY if self.rng.random() < 0.05 else self.rng.randint(1, 9)
        ttl = "T1" if self.rng.random() < 0.2 else ""
        self.left[node.name] += self.run.publish(node, count, ttl=ttl)

    def _some(self, node: Node) -> list[Sent]:
        """Of those that are left: one, some in a row, or some at random; nearly all of very many."""
        left = self.left[node.name]
        if not left:
            return []
        if len(left) > 100 and self.rng.random() < 0.5:
            return left[self.rng.randint(0, 5) :]
        first = self.rng.randrange(len(left))
        row = left[first : first + self.rng.randint(1, 6)]
        return row if self.rng.random() < 0.6 else [sent for sent in row if self.rng.random() < 0.6]

    def _settle(self) -> None:
        node, state = self._node(), self.rng.choice(STATES)
        to = self.letters if state == "rejected" and node is not self.letters and self.rng.random() < 0.5 else None
        if some := self._some(node):
            self.run.settle(node, some, state, self._durable(node), to=to)
            if state in ENDING:
                self._end(node, some)

    def _end(self, node: Node, some: list[Sent]) -> None:
        gone = {sent.eid for sent in some}
        self.left[node.name] = [sent for sent in self.left[node.name] if sent.eid not in gone]
        self.ended[node.name] += some

    def _turn(self) -> None:
        self.run.turn()

    def _attest(self) -> None:
        self.run.turn()
        self.run.attest()

    def _kill(self) -> None:
        self.run = self.world.run()

    def _close(self) -> None:
        self.run.close()
        self.run.attest()
        self.run = self.world.run()

    def _hold(self) -> None:
        """Numbered, and never answered: the run's `low` stays here."""
        self.run.number(1)

    def _untold(self) -> None:
        """Stored and settled, and no outcome record says so yet."""
        node = self._node()
        self.run.store(node, self.run.number(self.rng.randint(1, 3)))
        if some := self._some(node):
            self.run.settle(node, some, "accepted", self._durable(node), tell=False)
            self._end(node, some)

    def _expire(self) -> None:
        node = self.orders
        sent = self.run.publish(node, 2, ttl="T1")
        self.run.journal(node, "queue", "expired", [sent[0].eid], [0], False, "ttl")
        self.ended[node.name] += sent[:1]
        self.left[node.name] += sent[1:]

    def _evict(self) -> None:
        """The oldest makes room."""
        while len(self.left["small"]) < 20:
            self.left["small"] += self.run.publish(self.small, 5)
        oldest = self.left["small"][0]
        self.run.note(self.small, "", "evicted", oldest.eid, oldest.eid, "capacity")
        self._end(self.small, [oldest])

    def _purge(self) -> None:
        node = self.orders
        if some := self._some(node)[:1]:
            self.commands += 1
            self.world.command(f"d{self.commands}", "purge", node)
            self.run.note(node, "queue", "purge", some[0].eid, some[0].eid, f"command d{self.commands}")
            self._end(node, some)

    def _refuse(self) -> None:
        self.run.tell_publish(self._node(), self.run.number(2), [-1, -1], "capacity-reached")

    def _unknown(self) -> None:
        """The publisher heard that it is not known; it is there, or not."""
        node, seqs = self._node(), self.run.number(1)
        if self.rng.random() < 0.5:
            self.run.store(node, seqs)
        self.run.tell_publish(node, seqs, [-1], "indeterminate")

    def _again(self) -> None:
        """The durable is deleted, and made again from the oldest event on."""
        self.run.unsubscribe(self.prices, NEWS)
        self.world.durable_again(self.prices, NEWS, 0)
        self.left["prices"] = [*self.ended["prices"], *self.left["prices"]]
        self.ended["prices"] = []

    def _trim(self) -> None:
        """What was ended before all that is left."""
        node = self._node()
        if self.left[node.name] and self.rng.random() < 0.6:
            self.world.log.control.trim(node.topic, 0, min(sent.eid for sent in self.left[node.name]))

    def _project(self) -> None:
        node = self.orders
        if self.left[node.name]:
            self.world.project(node, None, min(sent.eid for sent in self.left[node.name]))

    # -- what has no reason

    def _wrong(self) -> None:
        step = self.rng.choice([
            self._told_and_not_there, self._not_noted, self._not_told, self._twice, self._foreign, self._ended_again,
            self._given_back, self._another_outcome, self._out_of_order, self._refused_and_there, self._passed_over,
            self._swapped, self._no_letter, self._trimmed_too_far,
        ])  # fmt: skip
        self.planted.append(step.__name__)
        step()

    def _told_and_not_there(self) -> None:
        node = self._node()
        end = self.world.log.control.bounds(node.topic, 0)[1]
        self.run.tell_publish(node, self.run.number(1), [end + self.rng.randint(0, 3)], "stored")

    def _not_noted(self) -> None:
        node = self._node()
        if some := self._some(node):
            self.run.settle(node, some, self.rng.choice(STATES), self._durable(node), journal=False)

    def _not_told(self) -> None:
        node = self._node()
        if some := self._some(node):
            seqs = self.run.number(len(some)) if self.rng.random() < 0.5 else [700_000 + sent.seq for sent in some]
            self.run.told.update(seqs)
            self.run.journal(node, self._durable(node) or "queue", "acknowledge", [sent.eid for sent in some], seqs,
                             False, "disposition")  # fmt: skip
            self._end(node, some)

    def _twice(self) -> None:
        """An even number more would be nothing to a xor alone."""
        node = self._node()
        if some := self.left[node.name] or self.ended[node.name]:
            key = KEY % (self.run.name.encode(), self.rng.choice(some).seq)
            count = self.rng.randint(1, 2)
            self.world.append(node.topic, [key] * count, [b"x"] * count)

    def _foreign(self) -> None:
        self.world.append(self._node().topic, [b"not ours"], [b"x"])

    def _ended_again(self) -> None:
        node = self._node()
        if ended := self.ended[node.name]:
            self.run.settle(node, [self.rng.choice(ended)], self.rng.choice(ENDING), self._durable(node))

    def _given_back(self) -> None:
        node = self._node()
        if ended := self.ended[node.name]:
            self.run.settle(node, [self.rng.choice(ended)], "released", self._durable(node))

    def _another_outcome(self) -> None:
        node = self._node()
        if some := self._some(node):
            self.run.settle(node, some, "accepted", self._durable(node))
            self.run.groups[-1]["outcome"] = "released"
            self._end(node, some)

    def _out_of_order(self) -> None:
        node = self._node()
        first, second = self.run.number(2)
        later, sooner = self.run.store(node, [second, first])
        self.run.tell_publish(node, [first], [sooner], "stored")
        if self.rng.random() < 0.5:
            self.run.turn()
        self.run.tell_publish(node, [second], [later], "stored")
        self.left[node.name] += [Sent(second, later), Sent(first, sooner)]

    def _refused_and_there(self) -> None:
        node, seqs = self._node(), self.run.number(1)
        self.run.tell_publish(node, seqs, [-1], "capacity-reached")
        self.run.store(node, seqs)

    def _passed_over(self) -> None:
        node = self.orders
        if len(left := self.left[node.name]) > 1:
            self.world.project(node, None, left[-1].eid)

    def _swapped(self) -> None:
        """The same seqs and the same EIDs, each with the other's."""
        node = self._node()
        if len(left := self.left[node.name]) > 1:
            some = self.rng.sample(left, 2)
            seqs = self.run.settle(node, some, "accepted", self._durable(node), journal=False)
            eids = [sent.eid for sent in reversed(some)]
            durable = self._durable(node) or "queue"
            self.run.journal(node, durable, "acknowledge", eids, seqs, False, "disposition")
            self._end(node, some)

    def _trimmed_too_far(self) -> None:
        """Some of what is left goes, too."""
        node = self._node()
        if self.shortens and (left := self.left[node.name]):
            first = self.rng.choice(left).eid
            self.world.log.control.trim(node.topic, 0, first)
            self.left[node.name] = [sent for sent in left if sent.eid >= first]

    def _no_letter(self) -> None:
        """Kept in another node, says the journal, and there it is not; or it is there twice."""
        node = self.orders
        if some := self._some(node)[:1]:
            self.run.settle(node, some, "rejected", to=self.letters)
            self._end(node, some)
            if self.shortens and self.rng.random() < 0.5:
                end = self.world.log.control.bounds(self.letters.topic, 0)[1]
                self.world.log.control.trim(self.letters.topic, 0, end)
