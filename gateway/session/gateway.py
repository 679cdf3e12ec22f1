"""The gateway: what all connections share, and one turn of its clock. Sans-IO: the server gives it sockets, the
simulation gives it a world.

A turn (`poll`) takes the realm's answers in order, dispatches events to links that have credit, a fair share at a
time and so many in all, and closes the turn's evidence. What must be sent is in `touched`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Final

import orjson

from gateway.attach.anonymous_relay import RelayLink
from gateway.attach.ended_publishers import end_publisher
from gateway.attach.link_names import LinkNames
from gateway.attach.node_lifetimes import NodeLifetimes
from gateway.config.limits import RELOAD_STEP_LINKS
from gateway.config.settings import Settings
from gateway.evidence.history import History
from gateway.evidence.outcome_key import OutcomeKey
from gateway.links.connection_log import ClosedConnection, note_closed
from gateway.links.idle_credit import take_back_idle_credit
from gateway.links.publishing import PublishingLink
from gateway.links.shared import Pumped, Shared
from gateway.session.connection import Connection
from gateway.session.counted import counted
from gateway.session.departures import Departures
from gateway.session.heartbeats import Heartbeats
from gateway.session.memory import end_stuck
from gateway.session.sole_connections import SoleConnections
from mappings import TableSet
from native_backend.clock import Clock
from native_backend.interface import NativeRealm
from native_backend.state.mistakes import Step, Steps

DISPATCHED_MAX: Final = 4_096
"""Deliveries after which a turn gives out no more: some 20 ms. Heartbeats and what peers say wait that long."""
RESUMED_MAX: Final = 32
"""Connections that waited for their attaches and go on in one turn; each has kept a turn's worth."""


class Gateway(Shared):
    """One process's gateway on one realm."""

    def __init__(self, settings: Settings, realm: NativeRealm, tables: TableSet, clock: Clock) -> None:
        super().__init__(settings, realm, tables, clock)
        self.connections: dict[Connection, None] = {}
        self.touched: dict[Connection, None] = {}
        self.sole_connections = SoleConnections()
        self.heartbeats: Heartbeats[Connection] = Heartbeats()
        self.lifetimes = NodeLifetimes(self)
        self.link_names = LinkNames()
        self.departures = Departures(self._broke)
        self.stopping = False
        self.turned_s = clock.monotonic_s()  # when the last turn began that came to its end
        self.on_broken: Callable[[Any], None] = lambda _: None
        self.on_origin = self._on_origin
        self.outcomes.counters.denied = self._on_denied
        self._turns = 0
        self._left_over = False  # the first of `ready` did not have their turn in the last one
        self._steps = Steps(
            Step("answers of the realm", self._take_answers),
            Step("attaches that waited", self._resume_attaching),
            Step("publishers of deleted nodes", self._end_publishers),
            Step("links that leave", self.departures.advance),
            Step("events to links", self._dispatch),
            Step("temporary nodes", self._advance_lifetimes),
            Step("outcome records", lambda: self.outcomes.flush()),
        )
        self.history = History(
            realm.run,
            lambda: counted(self, len(self.connections)),
            realm.history.append,
            clock.epoch_us,
            self.limits.history_interval_s,
        )
        self._gone: list[ClosedConnection] = []  # since the last second
        self._stored: dict[str, str] = {}  # digests of tables, and of the reasons of each: as many as operators write
        realm.authorizer.on_changed.append(self._on_access_changed)
        realm.on_deleted.append(self.publishers.hear)

    # -- tables

    def use(self, tables: TableSet) -> Iterator[None]:
        """Decide by other tables from the next fact on; what is in flight is decided by those under which it came.
        Between two turns; with more than `RELOAD_STEP_LINKS` links, the rest of them between the next ones."""
        self.tables, self.tables_since_us = tables, self.clock.epoch_us()
        self.outcomes.origin = tables.origin
        self.store_tables()
        links = [link for connection in self.connections for link in connection.engine.links()]
        for at, link in enumerate(links, 1):
            if link.alive:
                link.owner.use(tables)
            if at % RELOAD_STEP_LINKS == 0:
                yield

    def begin_evidence(self) -> None:
        """Before the first message: the tables, and the run's first outcome record."""
        self.store_tables()
        self.outcomes.begin()

    def store_tables(self) -> None:
        """The tables under their digest, and their reasons, before the first record that names it; once a run is
        enough."""
        now_us = self.clock.epoch_us()
        for document in (self.tables.because_to_store(now_us), self.tables.to_store(now_us)):
            digest = document["digest"]
            about = f"because {document['of']}" if "of" in document else digest
            if self._stored.get(about) != digest:
                self._stored[about] = digest
                self.realm.append_evidence("tables", digest.encode(), orjson.dumps(document))

    def _on_origin(self, container: str) -> None:
        """Its publishers transform by another conversion from now on."""
        publishers = [peer for peer in self.connections if peer.container == container]
        for link in [link for connection in publishers for link in connection.engine.links()]:
            if link.alive and isinstance(link.owner, PublishingLink | RelayLink):
                link.owner.use(self.tables)

    # -- connections

    def connect(self) -> Connection:
        shared = self.lifetimes, self.link_names, self.sole_connections, self.heartbeats
        connection = Connection(self, *shared, self.touched, self.departures)
        self.connections[connection] = None
        return connection

    def disconnect(self, connection: Connection) -> None:
        if connection in self.connections:
            del self.connections[connection]
            if connection.opened:
                self.shares.connections.give_back(connection.holder)
                who = connection.subject, connection.container, connection.address
                gone = ClosedConnection(connection.record, *who, connection.messages, connection.closing)
                self._gone.append(gone)
            connection.lost()

    def advance(self) -> None:
        """Once a second: what is logged or recorded at intervals."""
        end_stuck(self.held)
        self.notices.advance()
        take_back_idle_credit(self.credit, self.clock.monotonic_s())
        self.outcomes.advance(self.clock.monotonic_s())
        self._note_gone()
        self.history.advance()

    def _note_gone(self) -> None:
        """Some time after the end, when the last outcomes are counted."""
        gone, self._gone = self._gone, []
        for connection in gone:
            note_closed(self, connection)

    # -- the turn

    def poll(self) -> None:
        """One turn."""
        self.realm.mistakes.take(self._steps)

    def _advance_lifetimes(self) -> None:
        if self.lifetimes.waiting:
            self.lifetimes.advance()

    def _take_answers(self) -> None:
        for answer in self.realm.poll():
            try:
                answer.owner.answered(answer)
            except Exception:
                self._broke(answer.owner, "an answer of the realm could not be processed")

    def _resume_attaching(self) -> None:
        for _ in range(RESUMED_MAX):
            connection = self.attach_share.next()
            if connection is None:
                return
            try:
                connection.undecided.go_on(connection)
            except Exception:
                self._broke(connection, "a connection that waited for its attaches could not go on")

    def _end_publishers(self) -> None:
        if not self.publishers.deleted:
            return
        for link in self.publishers.take():
            try:
                end_publisher(link)
            except Exception:
                self._broke(link, "a publisher of a deleted node could not be ended")

    def _broke(self, owner: Any, what: str) -> None:
        """We are wrong: the connection it concerns closes, every other goes on."""
        self.report(what)
        self.on_broken(owner)

    def report(self, what: str) -> None:
        """Inside an `except`: we were wrong."""
        self.faults["assertion"] += 1
        self.realm.mistakes.note(what)

    def _on_denied(self, key: OutcomeKey, count: int) -> None:
        """Deliveries of a link that may not any more."""
        link = key.link
        who = f"user {link.user!a:.200}, container {link.container!a:.200}, from {link.address or 'here'}"
        words = f"{count} deliveries ({link.direction}) at node {link.node!a}: {key.native}; {who}"
        facts = {"user": link.user, "container": link.container[:200], "address": link.address, "node": link.node}
        who_key = link.user, link.container, link.address, link.node
        self.notices.tell("access denied", who_key, words, facts)

    def _on_access_changed(self) -> None:
        """Publishers check their rights again; the realm ends the subscriptions that have lost theirs."""
        for connection in self.connections:
            for link in connection.engine.links():
                if link.alive:
                    link.owner.access_changed()

    def _dispatch(self) -> None:
        """Events to the links that are ready: a share each, round after round until no link takes any. The first one
        changes every turn. Where a turn has given out enough, the next one goes on with the next link."""
        if self.stopping or not self.ready:
            return
        links, self.ready = [*self.ready], {}
        self._turns += 1
        start = 0 if self._left_over else self._turns % len(links)
        waiting: deque[Pumped] = deque(links[start:] + links[:start])
        last = self.outcomes.numbered + DISPATCHED_MAX
        while waiting and self.outcomes.numbered < last:
            link = waiting.popleft()
            if self._pump(link):
                waiting.append(link)
        self._left_over = bool(waiting)
        if waiting:
            self.ready = {**dict.fromkeys(waiting), **self.ready}

    def _pump(self, link: Pumped) -> bool:
        try:
            return link.pump()
        except Exception:
            self._broke(link, "sending events failed")
            return False

    # -- the end

    def stop(self) -> None:
        """Grant no more credit, dispatch no more events."""
        self.stopping = True
        self.credit.stopped = self.departures.at_once = True

    @property
    def drained(self) -> bool:
        """Nothing that a peer sent waits for the realm any more."""
        return self.in_flight_bytes <= 0

    def close_connections(self) -> None:
        """Say goodbye to every peer; what consumers had not stated becomes available again."""
        self.departures.finish()
        for connection in list(self.connections):
            connection.close("amqp:connection:forced", "the gateway is stopping", cause="stopped")

    def close_evidence(self) -> None:
        """The run's last record, marked as such when no delivery is left without an outcome; then the history's."""
        self._take_answers()
        self.outcomes.decisions.close()
        self.outcomes.flush(closed=self.outcomes.open == 0, at_once=True)
        self._note_gone()
        self.history.close()
