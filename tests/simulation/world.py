"""A world: one seed decides everything that happens in it.

It owns the clock, the network, the disk and the clients, and the gateway that lives on that disk, one life after the
other. `live` walks, then lets everything come to rest, then stops in order; checkers watch all the time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from hashlib import blake2b
from itertools import count
from random import Random

from native_backend.log.simulated.disk import Disk
from native_backend.log.simulated.driver import SimulatedLog
from native_backend.log.simulated.faults import NONE
from native_backend.nodes.admin import create_node
from tests.kit.realm.virtual_clock import START_MS, VirtualClock
from tests.simulation.checkers import CHECKERS
from tests.simulation.drain import drain
from tests.simulation.observation.checker import Checker
from tests.simulation.observation.evidence import Evidence
from tests.simulation.observation.facts import Transaction, WireLink
from tests.simulation.observation.ledger import PREFIX, Ledger
from tests.simulation.observation.observers import Observers
from tests.simulation.observation.watched_log import Answers
from tests.simulation.observation.witness import Witness
from tests.simulation.peers.client import Client
from tests.simulation.peers.network import Network, Wire
from tests.simulation.process import SimulatedProcess, start_process
from tests.simulation.rival import take_over
from tests.simulation.seeds import TRANSACTING
from tests.simulation.shape import WEATHERS, Shape, shape_of, transacting
from tests.simulation.walk import CHANNELS, QUEUES, Walk

_RIVAL = 0.005  # of a step, where the weather fences


def _shape(seed: int) -> Shape:
    random = Random(f"{seed} shape")
    shape = shape_of(random)
    return transacting(shape, random) if seed in TRANSACTING else shape


class World:
    """See the module's docstring. To the clients it is the gateway's address: the one who lives there answers."""

    def __init__(self, seed: int, shape: Shape | None = None, checkers: tuple[type[Checker], ...] = CHECKERS) -> None:
        self.seed = seed
        self.shape = shape or _shape(seed)
        self.clock = VirtualClock()
        self.disk_random = Random(f"{seed} disk")
        self.random = Random(f"{seed} world")
        self.faults = WEATHERS[self.shape.weather]
        self.disk = Disk()
        self.ledger = Ledger(self.disk)
        self.answers = Answers()
        self.network = Network(Random(f"{seed} network"))
        self.witnesses: list[Witness] = []
        self.places = count()  # of messages, as they are published
        self.runs: dict[str, str] = {}  # run -> how it ended: "", killed, stopped
        self.ended: set[str] = set()  # of those, the killed ones: their end can be seen
        self.last: deque[str] = deque(maxlen=40)
        self._trace = blake2b(digest_size=8)
        self.checkers: list[Checker] = [checker(self) for checker in checkers]
        self.observers = Observers(self.checkers, self.remember)
        self._found_nodes()
        frame_bytes = self.shape.frame_bytes
        self.clients = [
            Client(f"c{number}", Random(f"{seed} client {number}"), frame_bytes) for number in range(self.shape.clients)
        ]
        self._rivals = Random(f"{seed} rivals")
        self.walk = Walk(self, Random(f"{seed} walk"))
        self.process: SimulatedProcess
        self.evidence: Evidence  # when all is over
        self._open()

    def _found_nodes(self) -> None:
        log = SimulatedLog(self.disk, self.disk_random, self.clock.now_ms)
        for name in QUEUES:
            create_node(log, PREFIX, name, "queue", self.clock)
        for name in CHANNELS:
            create_node(log, PREFIX, name, "channel", self.clock)

    # -- life

    def live(self) -> World:
        """Walk, rest, end. Raises `Violation`."""
        try:
            self._live()
        finally:
            self.process.let_go()
            for client in self.clients:
                client.let_go()
        return self

    def _live(self) -> None:
        for _ in range(self.shape.steps):
            self.walk.step()
            self.tick()
            if self.faults.fence and self._rivals.random() < _RIVAL:
                take_over(self)
            if self.process.fenced and self.random.random() < 0.1:
                self.restart(in_order=False)
        self.faults = self.process.log.faults = NONE
        drain(self)
        for checker in self.checkers:
            checker.at_rest()
        self.process.stop()
        self.runs[self.process.run] = "stopped"
        self.evidence = Evidence(self.ledger.evidence(), self.answers.refused_evidence)
        for checker in self.checkers:
            checker.at_end()

    def tick(self) -> None:
        """A moment passes: the network carries, the gateway takes its turns."""
        self.clock.advance(self.random.randint(0, 3))
        for _ in range(self.random.randint(0, 2)):
            self.network.move()
            if self.random.random() < 0.8:
                self.process.turn()

    def pause(self, seconds: float) -> None:
        """The gateway's process waits for its disk."""
        self.clock.advance(max(1, round(seconds * 1000)))

    def until(self, reached: Callable[[], bool], deadline_ms: int) -> bool:
        """Let time pass until it is so; False when it is not so in time."""
        end = self.clock.now_ms() + deadline_ms
        while not reached():
            if self.clock.now_ms() >= end:
                return False
            self.clock.advance(1)
            self.network.move(everything=True)
            self.process.turn()
        return True

    def restart(self, *, in_order: bool) -> None:
        """One life of the gateway ends, the next begins on the same disk."""
        if in_order:
            self.process.stop()
        else:
            self.process.kill()
        self.runs[self.process.run] = "stopped" if in_order else "killed"
        self.remember(f"the gateway {self.runs[self.process.run]}")
        self._open()

    def _open(self) -> None:
        self.process = start_process(self)
        self.runs[self.process.run] = ""

    # -- the gateway's address

    def receive(self, wire: Wire, data: bytes) -> None:
        self.process.receive(wire, data)

    def closed(self, wire: Wire) -> None:
        self.process.closed(wire)

    # -- what happens

    def note(self, direction: str, data: bytes) -> None:
        self._trace.update(direction.encode() + len(data).to_bytes(4, "big") + data)

    @property
    def trace(self) -> str:
        """A digest of every byte that crossed the gateway's boundary, in order, and when it ended."""
        digest = self._trace.copy()
        digest.update(str(self.clock.now_ms()).encode())
        return digest.hexdigest()

    @property
    def links(self) -> list[WireLink]:
        """Every link there ever was, in the order of attaching within its connection."""
        return [link for witness in self.witnesses for link in witness.links]

    @property
    def transactions(self) -> list[Transaction]:
        """Every one that was ever declared."""
        return [transaction for witness in self.witnesses for transaction in witness.transactions]

    def remember(self, event: str) -> None:
        self.last.append(f"{self.clock.now_ms() - START_MS:>6} ms  {event}")
