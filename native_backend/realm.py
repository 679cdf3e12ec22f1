"""The realm, as the gateway calls it (docs/realm-interface.md): a thin facade over its parts.

Called from one thread; nothing blocks but `open` and `close`. What was asked is answered out of `poll`.
May import: the standard library, `native_backend` below it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Literal

from native_backend.access import SUBSCRIBING, Subject
from native_backend.admin import create_node, warned
from native_backend.admittance import Admittance
from native_backend.answers import Answer, DurablesFound, NodeFound, NodeKind, PostAnswer, Published
from native_backend.clock import Clock
from native_backend.command_desk import CommandDesk
from native_backend.commands import Command
from native_backend.control import Control
from native_backend.delivery import Delivered
from native_backend.durables import Durable
from native_backend.endings import Endings
from native_backend.feed import Feeds
from native_backend.figures import Figures
from native_backend.foreign import Frame, as_stored
from native_backend.journal import Journal
from native_backend.lease import Lease, Standby
from native_backend.letter import Enclose, as_it_is
from native_backend.limits import RealmLimits
from native_backend.log import Appended, Log, LogError, Records, TopicSpec
from native_backend.log_end import LogEnds
from native_backend.metadata import Metadata, read_tail, realm_topic, realm_topics
from native_backend.nodes import Node, NodeError
from native_backend.presence import Presence, SystemPresence
from native_backend.publisher import Publisher
from native_backend.selection import ScanBudget
from native_backend.services import Services, subscribe_answer
from native_backend.settlement import Settlement
from native_backend.shard import Shard
from native_backend.strings import Strings
from native_backend.subscription import Subscribe, Subscription
from native_backend.subscriptions import NOT_GRANTED, Subscriptions
from native_backend.temporary_nodes import TemporaryNodes
from native_backend.topic_watch import TopicWatch
from native_backend.transaction import Commit, Posting

__all__ = ["Delivered", "Node", "Posting", "Realm", "Settlement", "Subscribe", "Subscription"]
_LOG = logging.getLogger(__name__)
_PUBLISH = frozenset({"publish"})
_PAUSE_S = 0.001  # between two polls while closing


class Realm:
    """One process's part of a realm; see docs/realm-interface.md."""

    def __init__(
        self,
        log: Log,
        prefix: str,
        run: str,
        clock: Clock,
        control: Control,
        limits: RealmLimits | None = None,
        enclose: Enclose = as_it_is,
        frame: Frame = as_stored,
        *,
        lease_control: Control | None = None,
        presence: Presence | None = None,
    ) -> None:
        """`enclose` makes of an event what a dead-letter node keeps, `frame` of one that is no message what consumers
        are given. `lease_control`: where the lease looks, `control` unless it must not wait behind other jobs."""
        limits = limits or RealmLimits()
        self.run = run
        self.kind = log.kind
        self.poll_interval_s = log.poll_interval_s
        self.descriptor = log.descriptor
        self._answers: list[Answer] = []
        journal = Journal(log, prefix, run, clock, control, limits, self._answer)
        feeds = Feeds(log, clock, limits, frame)
        self._metadata = metadata = Metadata()
        self._lease_control = lease_control or control
        presence = presence or SystemPresence()
        lease = self._lease = Lease(log, prefix, run, clock, self._lease_control, limits, presence)
        journal.confirm = lease.confirm
        self._services = Services(
            log,
            prefix,
            run,
            clock,
            control,
            limits,
            feeds,
            journal,
            self._answer,
            metadata,
            enclose,
            lease,
            ScanBudget(feeds, limits.selection_scan),
            LogEnds(log, control, limits),
        )
        self._log, self._clock, self._control, self._journal, self._feeds = log, clock, control, journal, feeds
        self.access = Admittance(self._metadata, self._services)
        self._metadata.on_changed.append(feeds.change)
        self._shard = Shard(self._services, self._metadata)
        self._watch = TopicWatch(self._services, metadata, self._lose)
        self.standings = self._shard.standings  # how far every durable is, in numbers
        self._publisher = Publisher(self._services, self._metadata, self._shard)
        self.figures = Figures(self._services, self._shard, self._publisher)
        self._desk = CommandDesk(self._services, metadata, self._shard, self._publisher.capacities, self._follow)
        self._endings = Endings(self._services, metadata, self._shard, self._desk.works_on)
        self._subscriptions = Subscriptions(self._services, metadata, self._shard, self.access, self._endings)
        self.temporary = TemporaryNodes(self._services, metadata, self._shard, self._follow)
        self._following = False
        self._closing = False
        self._abandoned = False  # closed with settlements of unknown result
        self._follow_s = 0.0

    def open(self, standby: Standby | None = None) -> None:
        """Topics, lease, metadata, claim, recovery. Blocks; raises LogError, after which it may be called again.

        While another process owns the realm: waits, and tells `standby` so, or without one raises `fenced`."""
        prefix, deadline_s = self._services.prefix, self._services.limits.control_deadline_s
        specs = [TopicSpec(name, compacted=compacted) for name, compacted in realm_topics(prefix).items()]
        self._log.create_topics(specs, deadline_s)
        self._lease.acquire(standby)
        try:
            with self._lease.keep():
                self._metadata.fold(read_tail(self._log, realm_topic(prefix), 0))
                self.temporary.sweep()
                self._watch.open()
                self._shard.claim()
                self._desk.begin()
                self._endings.begin()
                self.temporary.begin()
        except LogError as error:
            if error.failure.cause not in ("unavailable", "indeterminate"):
                self._lease.release()
            raise

    @property
    def lost(self) -> bool:
        """Another process owns the realm now: what this one has open is closed, and only publishing goes on."""
        return self._journal.fenced and not self._abandoned

    # -- nodes

    def node(self, name: str) -> Node | None:
        """From memory, at once."""
        return self._metadata.nodes.get(name)

    def find_node(self, name: str, owner: object) -> None:
        """Answered by `NodeFound`, metadata read to its end first."""

        def followed(error: LogError | None) -> None:
            if error is None:
                self._answer(NodeFound(owner, self.node(name), "ready"))
            else:
                self._answer(NodeFound(owner, None, subscribe_answer(error.failure), error.failure.code))

        self._follow(followed)

    def create_node(self, name: str, kind: NodeKind, owner: object) -> None:
        """Answered by `NodeFound`. Idempotent."""
        log, prefix, clock = self._log, self._services.prefix, self._clock

        def job() -> Node | NodeError:
            try:
                return warned(log, create_node(log, prefix, name, kind, clock))
            except NodeError as error:
                return error

        def done(node: Node | NodeError | LogError) -> None:
            if isinstance(node, NodeError):
                self._answer(NodeFound(owner, None, "unexpected", str(node)))
            elif isinstance(node, LogError):
                self._answer(NodeFound(owner, None, subscribe_answer(node.failure), node.failure.code))
            else:
                self.find_node(name, owner)

        self._control.submit(job, done)

    def on_changed(self, listener: Callable[[Node | None], None]) -> None:
        """Told out of `poll` of every node whose properties changed; None: the realm's own grants did."""
        self._metadata.on_changed.append(listener)

    def execute(self, command: Command, owner: object) -> None:
        """Answered by `Commanded`. Commands that others wrote to the log are carried out by themselves."""
        self._desk.execute(command, owner)

    # -- access

    def refuse(self, node: Node, keys: Strings, values: Strings, owner: object) -> None:
        """`publish` for those who may not: answered by one `Published`."""
        self._answer(Published(owner, 0, [-1] * len(keys), "access-denied", NOT_GRANTED))

    # -- data

    def publish(self, node: Node, keys: Strings, values: Strings, owner: object) -> None:
        """Answered by one or several `Published`."""
        self._watch.used[node.store] = node
        self._publisher.publish(node, keys, values, owner)

    def may_publish(self, node: Node, subject: Subject) -> PostAnswer:
        """What publishing to that node would be answered now, as far as that can be known before."""
        if not self._metadata.alive(node):
            return "not-found"
        if not self.access.allows(subject, _PUBLISH, node):
            return "access-denied"
        return "capacity-reached" if self._publisher.capacities.full(node) else "ready"

    def commit(self, settlements: list[Settlement], postings: Sequence[Posting], owner: object) -> None:
        """Enlisted settlements and new events, all or none; answered by `Committed`. Unless it is done, the events of
        the settlements are held as before."""
        self._watch.used.update((posting.node.store, posting.node) for posting in postings)
        Commit(self._services, self._publisher.capacities, settlements, postings, owner).begin()

    def append_evidence(self, topic: Literal["outcomes", "tables"], key: bytes, value: bytes) -> None:
        """Not answered; failures are counted (`evidence_failed`) and logged."""
        self._publisher.evidence.append(topic, key, value)

    @property
    def evidence_failed(self) -> int:
        return self._publisher.evidence.failed

    def subscribe(self, request: Subscribe, owner: object) -> None:
        """Answered by `Subscribed`."""
        self._subscriptions.begin(request, owner)

    def durables(self) -> list[Durable]:
        """Those that are known now."""
        return [*self._metadata.durables.values()]

    def find_durables(self, name: str, subject: Subject, owner: object) -> None:
        """Answered by `DurablesFound`, metadata read to its end first: those of that name, if they may be ended."""

        def followed(error: LogError | None) -> None:
            if error is None:
                self._answer(self._endings.found(name, owner, lambda node: self._may_end(subject, node)))
            else:
                self._answer(DurablesFound(owner, [], subscribe_answer(error.failure), error.failure.code))

        self._follow(followed)

    def _may_end(self, subject: Subject, node: Node) -> bool:
        return self.access.allows(subject, SUBSCRIBING["durable"], node)

    def unsubscribe(self, durable: Durable, owner: object) -> None:
        """Answered by `Commanded`: the durable is deleted, unless it has links."""
        self._endings.unsubscribe(durable, owner)

    # -- turns

    def poll(self) -> list[Answer]:
        """What was answered since the last call, in order; also moves feeds, group commit and timers on."""
        self._advance()
        answers, self._answers[:] = self._answers[:], []
        return answers

    def on_ready(self, wake: Callable[[], None]) -> None:
        """`wake` may be called from any thread when `poll` has something to do."""
        self._log.on_ready(wake)
        self._control.on_ready(wake)

    @property
    def busy(self) -> bool:
        """Anything in flight, or a subscription open: poll at `poll_interval_s` (0: when woken)."""
        publisher = self._publisher
        return bool(
            self._subscriptions
            or publisher.pending
            or publisher.evidence.pending
            or self._journal.busy
            or self._control.pending
            or self._desk.busy
            or self._answers
        )

    def close(self, deadline_s: float) -> None:
        """After the last settle: waits for journal and evidence, snapshots, projects, closes the log. Blocks."""
        self.on_ready(_nobody)  # whoever was woken is closing, too
        self._closing = True
        self._shard.stop_trimming()
        until_s = self._clock.monotonic_s() + deadline_s
        self._subscriptions.close()
        self.temporary.close()
        self._advance()
        while self._unfinished and self._clock.monotonic_s() < until_s:
            self._control.pause(_PAUSE_S)
            self._advance()
        self._publisher.evidence.close()
        if self._journal.busy:
            _LOG.error("closing with settlements of unknown result")
            self._abandoned = not self._journal.fenced
            self._journal.give_up("closing", "indeterminate")
        self._control.close(max(0.0, until_s - self._clock.monotonic_s()))
        self._lease_control.close(max(0.0, until_s - self._clock.monotonic_s()))
        self._shard.close(until_s)
        self._lease.release()
        self._log.close(max(0.5, until_s - self._clock.monotonic_s()))

    @property
    def _unfinished(self) -> bool:
        publisher = self._publisher
        return bool(self._journal.busy or publisher.pending or publisher.evidence.pending or self._control.pending)

    def _advance(self) -> None:
        self._feeds.turn += 1
        self._control.completed()
        self._lease_control.completed()
        self._lease.advance()
        if self._lease.lost and not self._journal.fenced:
            self._journal.give_up("fenced", "fenced")
        for completion in self._log.poll():
            if isinstance(completion, Appended):
                self._publisher.completed(completion)
            else:
                self._journal.completed(completion)
        self._journal.advance()
        if not self._closing:
            self._begin_what_is_due()
        self._publisher.advance()
        self._wake_links()

    def _begin_what_is_due(self) -> None:
        """Not while closing, which waits for everything that was begun."""
        self._shard.advance()
        self._desk.advance()
        self._endings.advance()
        self.access.advance()
        self._watch.advance()
        self.temporary.advance()
        if not self._following and self._clock.monotonic_s() >= self._follow_s:
            self._following = True
            self._follow(lambda _: None)

    def _wake_links(self) -> None:
        """Those that parked, where there may be something for them now."""
        lobby = self._services.lobby
        self._feeds.look()
        if lobby.has_dates:
            lobby.stir_due(self._clock.epoch_us() // 1000)
        if lobby.restless:
            lobby.serve()

    def _answer(self, answer: Answer) -> None:
        if answer.owner is not None:  # somebody asked
            self._answers.append(answer)

    # -- metadata

    def _follow(self, then: Callable[[LogError | None], None]) -> None:
        """Read metadata to its end, lose what is no more, then go on."""
        log, topic, metadata = self._log, realm_topic(self._services.prefix), self._metadata

        def done(parts: list[Records] | LogError) -> None:
            self._following = False
            self._follow_s = self._clock.monotonic_s() + self._services.limits.metadata_interval_s
            try:
                gone = metadata.fold(_certain(parts))
            except LogError as error:
                _LOG.warning("cannot follow realm metadata: %s", error)
                then(error)
                return
            for node in gone:
                self._lose(node)
            then(None)

        self._control.submit(lambda: read_tail(log, topic, metadata.position), done)

    def _lose(self, node: Node) -> None:
        node = node.part(0)
        self._shard.lose(node, "not-found", "deleted")
        self._publisher.forget(node)
        for part in node.parts:
            self._services.ends.forget(part.store)
        self._subscriptions.lose_plain(node.store)


def _certain(parts: list[Records] | LogError) -> list[Records]:
    if isinstance(parts, LogError):
        raise parts
    return parts


def _nobody() -> None:
    """Who listens when the realm is closing."""
