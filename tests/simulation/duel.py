"""Two gateways and one realm: who owns it lives on, ends, is killed, or is stopped for longer than its lease; the other
waits its turn. One seed decides. Events go to consumers of both, by turns; at the end all of them have ended.

`live` gives the violations in words. Times are milliseconds of the world.
"""

from __future__ import annotations

from random import Random

from native_backend.journal.lease import Owner
from native_backend.limits import RealmLimits
from tests.kit.realm.realm_process import Consumer, RealmProcess
from tests.kit.realm.worlds import SimulatedWorld

ROUNDS = 6
LEASE_MS = 300
AT_ONCE_MS = 100
LIMITS = RealmLimits(lease_s=LEASE_MS / 1000, lease_look_s=0.02, snapshot_records=8, retry_interval_s=0.005)
FATES = ("lives", "ends", "is killed", "is stopped")


class Waits(Exception):
    """It has waited long enough to show that it would wait for ever."""


class Duel:
    """One seed."""

    def __init__(self, seed: int) -> None:
        self.random = Random(f"{seed} duel")
        self.world = SimulatedWorld("simulated", seed=seed)
        self.violations: list[str] = []
        self.takeovers = 0
        self._ended: set[int] = set()
        self._number = 0

    def live(self) -> list[str]:
        owner = RealmProcess(self.world, "d", LIMITS).open()
        queue = owner.create("orders")
        for _ in range(ROUNDS):
            consumer = owner.consumer(queue)
            self._publish(owner)
            self._take(owner, consumer)
            try:
                owner = self._challenge(owner, consumer, self.random.choice(FATES))
            except Waits:
                return self.violations
        owner.kill()
        last = RealmProcess(self.world, "d", LIMITS).open()
        left = last.consumer(queue).drain()
        stored = last.log.control.read_range("d.node.orders", 0, 0, 100_000).offsets
        self.violations += [f"event {eid} has ended and comes again" for eid in left if eid in self._ended]
        missing = {*stored} - self._ended - {*left}
        self.violations += [f"event {eid} is with no one" for eid in sorted(missing)]
        last.close()
        return self.violations

    def _publish(self, owner: RealmProcess) -> None:
        bodies = [b"%d" % (self._number + at) for at in range(self.random.randint(8, 12))]
        self._number += len(bodies)
        node = owner.realm.node("orders")
        assert node is not None
        owner.publish(node, bodies)

    def _take(self, owner: RealmProcess, consumer: Consumer) -> None:
        """Some of what is there; some of that is settled."""
        eids = consumer.receive(self.random.randint(1, 4))
        self.violations += [f"event {eid} has ended and comes again" for eid in eids if eid in self._ended]
        ended = self.random.sample(eids, self.random.randint(0, len(eids)))
        if ended:
            consumer.acknowledge(ended)
            self._ended.update(ended)

    def _challenge(self, owner: RealmProcess, consumer: Consumer, fate: str) -> RealmProcess:
        """Who owns the realm afterwards."""
        rival = RealmProcess(self.world, "d", LIMITS)
        asked_ms = self.world.now_ms()
        after_ms = self.random.randint(0, LEASE_MS)

        def pause(_: float) -> None:
            self.world.pass_time()
            since_ms = self.world.now_ms() - asked_ms
            if since_ms > 4 * LEASE_MS:
                raise Waits
            if owner.dead or fate == "is stopped":
                return
            if since_ms < after_ms or fate == "lives":
                owner.turn()
            elif fate == "ends":
                owner.close()
            else:
                owner.kill()

        own = rival.workers.control.pause
        setattr(rival.workers.control, "pause", pause)  # noqa: B010
        try:
            rival.realm.open(_unheard)
            setattr(rival.workers.control, "pause", own)  # noqa: B010
        except Waits:
            rival.kill()
            if fate != "lives":
                self.violations.append(f"one that {fate} is waited for for ever")
                raise
            self._take(owner, consumer)
            return owner
        self.takeovers += 1
        self._taken_over(owner, consumer, rival, fate, self.world.now_ms() - asked_ms - after_ms)
        return rival

    def _taken_over(
        self, owner: RealmProcess, consumer: Consumer, rival: RealmProcess, fate: str, took_ms: int
    ) -> None:
        if fate == "lives":
            self.violations.append("the realm was taken from one that lives")
        if fate in ("ends", "is killed") and took_ms > AT_ONCE_MS:
            self.violations.append(f"one that {fate} was followed after {took_ms} ms")
        node = rival.realm.node("orders")
        assert node is not None
        given = rival.consumer(node).drain()
        self.violations += [f"event {eid} has ended and comes again" for eid in given if eid in self._ended]
        if fate != "is stopped":
            return
        had = {*consumer.seqs}
        owner.answers += owner.realm.poll()  # it wakes
        twice = {*consumer.take()} & {*given}
        self.violations += [f"event {eid} is given by two" for eid in sorted(twice)]
        mine = sorted(had - self._ended)[:1]
        if mine and consumer.settle("acknowledge", mine) == "done":
            self.violations.append(f"event {mine[0]} is ended by one that was fenced")
        owner.kill()


def _unheard(_: Owner) -> None:
    """No one is told."""
