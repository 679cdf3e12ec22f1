"""The gateway: what all connections share, and one turn of its clock. Sans-IO: the server gives it sockets, the
simulation gives it a world.

A turn (`poll`) takes the realm's answers in order, dispatches events to links that have credit, a fair share at a
time, and closes the turn's evidence. What must be sent is in `touched`. May import: `gateway`, `mappings`,
`native_backend`, `transformers`.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import orjson

from gateway.connection import Connection
from gateway.consuming import ConsumingLink
from gateway.conversion import Conversion, conversion
from gateway.coordinator import CoordinatorLink
from gateway.credit import CreditPool
from gateway.engine_links import Link
from gateway.lifetimes import Lifetimes
from gateway.limits import RELOAD_STEP_LINKS
from gateway.origins import Origins, origin_of
from gateway.outcomes import Outcomes
from gateway.publishing import PublishingLink
from gateway.relay import RelayLink
from gateway.requests import TRANSACTION_ID_BYTES
from gateway.settings import Settings
from gateway.sole_connections import SoleConnections
from mappings import TableSet
from native_backend.clock import Clock
from native_backend.realm import Realm

log = logging.getLogger("realmgate.gateway")
LinkName = tuple[str, str, type]  # container, name, direction: one link at a time (O-6)


class Gateway:
    """One process's gateway on one realm."""

    def __init__(self, settings: Settings, realm: Realm, tables: TableSet, clock: Clock) -> None:
        self.settings = settings
        self.limits = settings.limits
        self.realm = realm
        self.tables = tables
        self.clock = clock
        self.container = f"realmgate-{realm.run}"
        self.credit = CreditPool(self.limits.in_flight, self.limits.credit_per_link, self.limits.links)
        self.outcomes = Outcomes(
            realm.run,
            tables.origin,
            lambda key, value: realm.append_evidence("outcomes", key, value),
            clock.epoch_us,
        )
        self.connections: dict[Connection, None] = {}
        self.opened = 0  # of those, whose peers have said who they are
        self.touched: dict[Connection, None] = {}
        self.ready: dict[ConsumingLink, None] = {}  # may get something in the next turn; all others are not visited
        self.links = 0
        self.sole_connections = SoleConnections()
        self.lifetimes = Lifetimes(self)
        self.link_names: dict[LinkName, tuple[Connection, Link]] = {}
        self.in_flight_bytes = 0
        self.origins = Origins(realm.durables)
        self.transactions = 0  # open ones
        self.transaction_bytes = 0  # of messages that they hold
        self.faults: Counter[str] = Counter()
        self.stopping = False
        self.on_pressure: Callable[[bool], None] = lambda _: None  # stop or go on reading sockets
        self.on_broken: Callable[[Any], None] = lambda _: None
        self._pressure = False
        self._link_numbers = 0
        self._transaction_numbers = 0
        self._turns = 0
        self._stored: set[str] = set()  # digests of tables, as many as operators write
        realm.access.on_changed.append(self._on_access_changed)

    # -- shared counts

    def next_link_number(self) -> int:
        self._link_numbers += 1
        return self._link_numbers

    def next_transaction_id(self) -> bytes:
        """At most 32 octets (W-19); nobody else ever gives the same one (NF-2)."""
        self._transaction_numbers += 1
        return f"{self.realm.run}:{self._transaction_numbers:x}".encode()[:TRANSACTION_ID_BYTES]

    def hold_bytes(self, count: int) -> None:
        """Bytes of messages that wait for the realm. Above the limit nobody is read from (a publisher's credit
        counts messages, not bytes)."""
        self.in_flight_bytes += count
        if not self._pressure and self.in_flight_bytes > self.limits.in_flight_bytes:
            self._pressure = True
            self.on_pressure(True)

    def release_bytes(self, count: int) -> None:
        self.in_flight_bytes -= count
        if self._pressure and self.in_flight_bytes < self.limits.in_flight_bytes // 2:
            self._pressure = False
            self.on_pressure(False)

    def count_fault(self, fault: str, detail: str) -> None:
        """Count, and log the first of each kind: a peer must not be able to fill the disk."""
        self.faults[fault] += 1
        if self.faults[fault] == 1:
            log.warning("first peer fault of kind %s: %s", fault, detail[:200])

    # -- tables

    def use(self, tables: TableSet) -> Iterator[None]:
        """Decide by other tables from the next fact on; what is in flight is decided by those under which it came.
        Between two turns; with more than `RELOAD_STEP_LINKS` links, the rest of them between the next ones."""
        self.tables = tables
        self.outcomes.origin = tables.origin
        self.store_tables()
        links = [link for connection in self.connections for link in connection.engine.links()]
        for at, link in enumerate(links, 1):
            if link.alive and isinstance(link.owner, PublishingLink | RelayLink | ConsumingLink | CoordinatorLink):
                link.owner.use(tables)
            if at % RELOAD_STEP_LINKS == 0:
                yield

    def store_tables(self) -> None:
        """The tables under their digest, before the first record that names it; once a run is enough."""
        digest = self.tables.digest
        if digest not in self._stored:
            self._stored.add(digest)
            document = orjson.dumps(self.tables.to_store(self.clock.epoch_us()))
            self.realm.append_evidence("tables", digest.encode(), document)

    def conversion(self, node: str, tables: TableSet, container: str) -> Conversion:
        """What makes events of that container's messages for that node."""
        name = tables.classify(node).transformer or self.settings.transformer
        made = conversion(name, self.realm.run, node)
        return made.marked(origin_of(container)) if container in self.origins else made

    def mark_origin(self, container: str) -> bool:
        """What it publishes bears its mark from now on. False: there are too many such containers."""
        known = container in self.origins
        if not known and len(self.origins) >= self.limits.no_local_containers:
            return False
        self.origins.hold(container)
        publishers = [] if known else [each for each in self.connections if each.container == container]
        for link in [link for connection in publishers for link in connection.engine.links()]:
            if link.alive and isinstance(link.owner, PublishingLink | RelayLink):
                link.owner.use(self.tables)
        return True

    # -- connections

    @property
    def is_full(self) -> bool:
        """No more connections; or no more that have not said who they are, so that those cannot take every place."""
        count, limits = len(self.connections), self.limits
        return count >= limits.connections or count - self.opened >= limits.half_open_connections

    def connect(self) -> Connection:
        connection = Connection(self)
        self.connections[connection] = None
        return connection

    def disconnect(self, connection: Connection) -> None:
        if connection in self.connections:
            del self.connections[connection]
            self.opened -= connection.opened
            connection.lost()

    # -- the turn

    def poll(self) -> None:
        """One turn."""
        self._take_answers()
        if not self.stopping:
            self._dispatch()
        if self.lifetimes.waiting:
            self.lifetimes.advance()
        self.outcomes.flush()

    def _take_answers(self) -> None:
        for answer in self.realm.poll():
            try:
                answer.owner.answered(answer)
            except Exception:
                self._broke(answer.owner, "an answer of the realm could not be carried out")

    def _broke(self, owner: Any, what: str) -> None:
        """We are wrong: the connection it concerns closes, every other goes on."""
        self.report(what)
        self.on_broken(owner)

    def report(self, what: str) -> None:
        """Inside an `except`: we were wrong. Counted, and logged with its traceback."""
        self.count_fault("assertion", what)
        log.exception(what)

    def _on_access_changed(self) -> None:
        """Publishers look again; consumers that may no more are told by the realm."""
        for connection in self.connections:
            for link in connection.engine.links():
                if link.alive and isinstance(link.owner, PublishingLink | RelayLink):
                    link.owner.access_changed()

    def _dispatch(self) -> None:
        """Events to the links that are ready: a share each, round after round until nobody takes any. The first one
        changes every turn."""
        if not self.ready:
            return
        links, self.ready = [*self.ready], {}
        self._turns += 1
        start = self._turns % len(links)
        hungry: list[ConsumingLink] = links[start:] + links[:start]
        while hungry:
            hungry = [link for link in hungry if self._pump(link)]

    def _pump(self, link: ConsumingLink) -> bool:
        try:
            return link.pump()
        except Exception:
            self._broke(link, "events could not be sent")
            return False

    # -- the end

    def stop(self) -> None:
        """Grant no more credit, dispatch no more events."""
        self.stopping = True
        self.credit.stopped = True

    @property
    def drained(self) -> bool:
        """Nothing that a peer sent waits for the realm any more."""
        return self.in_flight_bytes <= 0

    def close_connections(self) -> None:
        """Say goodbye to every peer; what consumers had not stated becomes available again."""
        for connection in list(self.connections):
            connection.close("amqp:connection:forced", "the gateway is stopping", cause="stopped")

    def close_evidence(self) -> None:
        """The run's last record, marked as such when no delivery is left without an outcome."""
        self._take_answers()
        self.outcomes.flush(closed=self.outcomes.open == 0)
