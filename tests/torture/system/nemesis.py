"""The nemesis: one fault after another, chosen by a seed. After each fault everything is up again.

A kill comes when at least `IN_FLIGHT` deliveries are under way. Nothing here depends on tight timing: it waits for
what it needs.
"""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from random import Random

from tests.kit.patience import HANG_S
from tests.kit.processes.broker import Broker
from tests.torture.crash_points import POINTS, Point
from tests.torture.history import History
from tests.torture.peers.clients import Clients
from tests.torture.system.deployment import PUBLISH_DEADLINE_MS, Deployment

IN_FLIGHT = 500
PUSH_S = 60.0  # until so many are in flight
POINT_S = HANG_S  # until a gateway under load has come to the place where it is to die
RELOADS = 5
RELOAD_S = 60.0  # until the last tables are active
JUMPS = 3  # in each direction
NEAR_S = 2.0
FAR_S = 3500.0  # Kafka refuses a record that is an hour ahead of its own clock (message.timestamp.after.max.ms)
LONG_S = 7.0  # beyond every time-out: silence of peers and gateway, publish deadline, transaction


ANYWHERE = (
    "kill gateway", "kill at point", "stop gateway", "restart gateway", "reload", "cut", "delay", "swallow",
    "jump clock",
)  # fmt: skip
FAULTS = {
    "embedded": (*ANYWHERE, "fill disk"),
    "kafka": (*ANYWHERE, "kill kafka", "stop kafka", "cut kafka", "delay kafka", "swallow kafka"),
    "cluster": (*ANYWHERE, "kill kafka", "stop kafka"),
}
PART = "part brokers"


def faults_of(place: str, *, parts: bool) -> tuple[str, ...]:
    """What can go wrong with such a realm; `parts`: its brokers are hosts of a network, which can lose packets."""
    return (*FAULTS[place], PART) if parts else FAULTS[place]


class Nemesis:
    """`do(NAME)` makes one thing go wrong: one of `faults_of`."""

    def __init__(self, deployment: Deployment, clients: Clients, history: History, random: Random) -> None:
        self.deployment, self.clients, self.history, self.random = deployment, clients, history, random
        self.done: Counter[str] = Counter()
        self.points: Counter[str] = Counter()  # deaths at named places
        self.missed: Counter[str] = Counter()  # places that a gateway did not come to in time
        self.least_in_flight = 10**9
        names = faults_of(deployment.place, parts=deployment.network is not None)
        self._faults = {name: getattr(self, name.replace(" ", "_")) for name in names}

    @property
    def kills(self) -> int:
        return self.done["kill gateway"] + self.done["kill kafka"] + self.points.total()

    def do(self, name: str, point: Point | None = None) -> None:
        if point is not None:
            self.kill_at_point(point)
        else:
            self._faults[name]()
        self.done[name] += 1
        self.clients.check()

    def live(self, seconds: float) -> None:
        """Let things go well for a while."""
        time.sleep(seconds)
        self.clients.check()

    def load(self) -> int:
        """Wait until so many deliveries are under way that a kill hurts."""
        self.clients.push(True)
        until = time.monotonic() + PUSH_S
        while (in_flight := self.clients.in_flight) < IN_FLIGHT:
            self.clients.check()
            self.deployment.check()
            assert time.monotonic() < until, f"only {in_flight} in flight\n{self.deployment.log()}"
            time.sleep(0.002)
        return in_flight

    def _note(self, what: str, in_flight: int = 0) -> None:
        self.history.note("nemesis", what, in_flight)

    def _struck(self, what: str, in_flight: int) -> None:
        self.least_in_flight = min(self.least_in_flight, in_flight)
        self._note(what, in_flight)
        self.clients.push(False)

    # -- the gateway

    def kill_gateway(self) -> None:
        in_flight = self.load()
        self.deployment.kill()
        self._struck("kill gateway", in_flight)
        self.deployment.start()

    def kill_at_point(self, point: Point | None = None) -> None:
        point = point or self.random.choice(points_of(self.deployment.kind, trims=self.deployment.retain_s > 0))
        in_flight = self.load()
        if point.is_start:
            self.deployment.kill()
            self._struck("kill gateway", in_flight)
        self.deployment.mark.write_text(point.name)
        if point.is_start:
            self.deployment.launch()
            self.deployment.await_ready()
        elif any(word in point.name for word in ("snapshot", "returned", "projection", "trim", "rolled")):
            self.clients.push(False)  # these need settlements to go on
        died = self._await_death(point)
        self.deployment.mark.unlink()
        self.clients.push(False)
        if died:
            self._struck(f"kill at: {point.name}", in_flight)
            self.points[point.name] += 1
            self.deployment.start()

    def _await_death(self, point: Point) -> bool:
        process = self.deployment.process
        assert process is not None
        until = time.monotonic() + POINT_S
        while process.poll() is None:
            if time.monotonic() > until:
                self.deployment.mark.write_text("")
                if process.poll() is None:
                    self.missed[point.name] += 1
                    return False
            if self.clients.in_flight > 3 * IN_FLIGHT:
                self.clients.push(False)  # no one settles while all hold
            time.sleep(0.002)
        code = self.deployment.reap()
        assert code == -signal.SIGKILL, f"the gateway ended with {code} before {point.name!r}\n{self.deployment.log()}"
        return True

    def stop_gateway(self) -> None:
        """It sleeps beyond every time-out, and wakes."""
        in_flight = self.load()
        self.deployment.signal(signal.SIGSTOP)
        self._struck("stop gateway", in_flight)
        time.sleep(LONG_S)
        self.deployment.signal(signal.SIGCONT)
        self._note("continue gateway")
        self._revive()

    def restart_gateway(self) -> None:
        """In order, under load."""
        in_flight = self.load()
        self._struck("restart gateway", in_flight)
        code = self.deployment.stop()
        assert code == 0, f"the gateway stopped with {code}\n{self.deployment.log()}"
        self.deployment.start()

    def reload(self) -> None:
        """Other tables again and again, under load, and some that are not sound between them."""
        in_flight = self.load()
        for _ in range(RELOADS):  # no one waits for an answer: one try overtakes another
            self._spoil()
            time.sleep(self.random.uniform(0.0, 0.1))
            digest = self._rename()
            time.sleep(self.random.uniform(0.0, 0.1))
        self._await_said(f"tables {digest} are active")
        self._spoil()
        self._await_said(f"these tables are not used; tables {digest} stay active")
        self._await_said(f"tables {self._rename()} are active")
        self._struck("reload", in_flight)

    def _spoil(self) -> None:
        self.deployment.tables.spoil()
        self.deployment.signal(signal.SIGHUP)

    def _rename(self) -> str:
        digest = self.deployment.tables.rename(self.random.randrange(10**9))
        self.deployment.signal(signal.SIGHUP)
        return digest

    def _await_said(self, words: str) -> None:
        until = time.monotonic() + RELOAD_S
        while words not in self.deployment.log_path.read_text():
            assert time.monotonic() < until, f"no one said {words!r}\n{self.deployment.log()}"
            self.clients.check()
            time.sleep(0.05)

    def jump_clock(self) -> None:
        """The gateway's time of day jumps ahead of the machine's and behind it, by seconds to an hour, and stays off.
        No message of ours has a time to live or a delay, so nothing is excused by it. A gateway that trims does so by
        the time of day: there the jumps are so short that what is trimmed has been read before."""
        process, clock, retain_s = self.deployment.process, self.deployment.clock, self.deployment.retain_s
        assert process is not None and clock is not None and clock.moves(process.pid), "its clock cannot jump"
        far_s = retain_s / 4 if retain_s else FAR_S
        for direction in self.random.sample((-1, 1), 2) * JUMPS:
            ahead_s = direction * NEAR_S * (far_s / NEAR_S) ** self.random.random()  # as many short ones as long ones
            in_flight = self.load()
            clock.jump(ahead_s)
            self._struck(f"jump clock: {ahead_s:.1f} s ahead", in_flight)
            time.sleep(self.random.uniform(0.1, 0.6))
        self._revive()

    def _revive(self) -> None:
        """A gateway that found itself fenced has to be started again; ours has no rival, so it has to live on."""
        self.deployment.check()

    # -- the network

    def cut(self) -> None:
        in_flight = self.load()
        self.deployment.front.cut()
        self._struck("cut", in_flight)

    def delay(self) -> None:
        self._note("delay")
        self.deployment.front.delay_s = self.random.uniform(0.02, 0.3)
        time.sleep(1.0)
        self.deployment.front.delay_s = 0.0

    def swallow(self) -> None:
        """Connections stand and nothing passes, until both sides have given them up."""
        in_flight = self.load()
        self._struck("swallow", in_flight)
        self.deployment.front.is_swallowing = True
        time.sleep(LONG_S)
        self.deployment.front.cut()
        self.deployment.front.is_swallowing = False

    def cut_kafka(self) -> None:
        assert self.deployment.kafka_proxy is not None
        self._struck("cut kafka", self.load())
        self.deployment.kafka_proxy.cut()

    def delay_kafka(self) -> None:
        assert self.deployment.kafka_proxy is not None
        self._note("delay kafka")
        self.deployment.kafka_proxy.delay_s = self.random.uniform(0.05, 0.5)
        time.sleep(2.0)
        self.deployment.kafka_proxy.delay_s = 0.0

    def swallow_kafka(self) -> None:
        """No one closes anything, and no answer comes, beyond every time-out."""
        assert self.deployment.kafka_proxy is not None
        self._struck("swallow kafka", self.load())
        self.deployment.kafka_proxy.is_swallowing = True
        time.sleep(LONG_S)
        self.deployment.kafka_proxy.is_swallowing = False  # what was on its way comes late

    # -- the realm

    def fill_disk(self) -> None:
        assert self.deployment.disk is not None
        in_flight = self.load()
        self.deployment.disk.fill()
        self._struck("fill disk", in_flight)
        time.sleep(1.5)
        self.deployment.disk.clear()
        self._note("clear disk")

    def _broker(self) -> Broker:
        return self.random.choice(self.deployment.brokers)

    def kill_kafka(self) -> None:
        broker = self._broker()
        in_flight = self.load()
        broker.kill()
        self._struck("kill kafka", in_flight)
        if self.random.random() < 0.5:
            time.sleep(PUBLISH_DEADLINE_MS / 1000 + 1)
        broker.restart()
        self._note("kafka is back")

    def stop_kafka(self) -> None:
        broker = self._broker()
        in_flight = self.load()
        os.kill(broker.pid, signal.SIGSTOP)
        self._struck("stop kafka", in_flight)
        time.sleep(LONG_S)
        os.kill(broker.pid, signal.SIGCONT)
        self._note("continue kafka")

    def part_brokers(self) -> None:
        """One broker and one or both of the others do not hear each other, or one side does not hear the other, beyond
        every time-out. The gateway and its peers hear all of them, and are heard by all."""
        network = self.deployment.network
        assert network is not None
        alone, *others = self.random.sample([*network.hosts], len(network.hosts))
        others = others[: self.random.randint(1, len(others))]
        away, back = [(alone, other) for other in others], [(other, alone) for other in others]
        ways = self.random.choice((away, back, away + back))
        in_flight = self.load()
        network.part(ways)
        self._struck(f"part brokers: {', '.join(f'{sender} to {receiver}' for sender, receiver in ways)}", in_flight)
        time.sleep(LONG_S)
        lost = network.heal()
        self._note(f"all brokers hear each other; {lost} packets were lost")
        assert lost or len(others) == 1, "three brokers had nothing to say to each other"  # two that lead nothing may
        self._revive()


def points_of(kind: str, *, only_own: bool = False, trims: bool = True) -> list[Point]:
    """The places that a gateway on such a realm comes to; `only_own`: and on no other; `trims`: also when it trims."""
    kind = "kafka" if kind == "cluster" else kind
    points = [point for point in POINTS if point.realm == kind or (point.realm == "both" and not only_own)]
    return [point for point in points if trims or "trim" not in point.name]
