"""The realm that the gateway calls (`interface.py`, docs/realm-interface.md): a thin facade over its parts.

Called from one thread; nothing blocks but `open` and `close`. What was asked is answered out of `poll`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial

from native_backend.access.authorizer import Authorizer
from native_backend.access.durable_owner import may_use
from native_backend.clock import Clock
from native_backend.dispatch.context import RealmContext, subscribe_answer
from native_backend.events.batch import DeliveryBatch
from native_backend.events.copy_key import Annotate, as_it_is
from native_backend.events.event_kind import Frame, as_stored
from native_backend.events.log_end import LogEnds
from native_backend.events.selection import ScanBudget
from native_backend.events.window import StoreWindows
from native_backend.journal.journal import Journal
from native_backend.journal.lease import Lease, Standby
from native_backend.journal.process_liveness import ProcessLiveness, SystemLiveness
from native_backend.journal.settlement import Settlement
from native_backend.limits import RealmLimits
from native_backend.log.columns import Strings
from native_backend.log.port import Log, LogError, TopicSpec
from native_backend.log.worker import Workers
from native_backend.metrics import RealmMetrics
from native_backend.nodes.answers import Answer, DurablesFound, NodeFound, Published
from native_backend.nodes.commands import Command
from native_backend.nodes.durable import Durable, DurableName
from native_backend.nodes.grants import SUBSCRIBING, Subject
from native_backend.nodes.metadata import Metadata, read_tail, realm_topic, realm_topics
from native_backend.nodes.node import Node
from native_backend.nodes.words import EvidenceTopic, NodeKind, PostAnswer
from native_backend.operations.command_executor import CommandExecutor
from native_backend.operations.durable_lifetime import DurableLifetimes
from native_backend.operations.node_creation import NodeCreations
from native_backend.operations.route import Selecting, no_selectors
from native_backend.publish.attestation import Attestation
from native_backend.publish.commit import Commit, Posting
from native_backend.publish.diagnosis import Diagnosis
from native_backend.publish.event_sizes import EventSizes
from native_backend.publish.publisher import Publisher
from native_backend.publish.settings_watch import SettingsWatch
from native_backend.publish.topic_watch import TopicWatch
from native_backend.shard.metadata_looks import MetadataLooks
from native_backend.shard.shard import Shard
from native_backend.shard.truncation import Truncations
from native_backend.state.mistakes import Mistakes
from native_backend.state.timers import Timers
from native_backend.subscriptions.registry import NOT_GRANTED, SubscriptionRegistry
from native_backend.subscriptions.subscription import Subscribe, Subscription
from native_backend.temporary.nodes import TemporaryNodes
from native_backend.turn import Turn

__all__ = ["DeliveryBatch", "Node", "Posting", "Realm", "Settlement", "Subscribe", "Subscription"]
_LOG = logging.getLogger(__name__)
_PUBLISH = frozenset({"publish"})
_PAUSE_S = 0.001  # between two polls while closing


class Realm:
    """One process's part of a realm; each method as `interface.NativeRealm` says."""

    def __init__(
        self,
        log: Log,
        prefix: str,
        run: str,
        clock: Clock,
        workers: Workers,
        limits: RealmLimits | None = None,
        annotate: Annotate = as_it_is,
        frame: Frame = as_stored,
        *,
        selecting: Selecting = no_selectors,
        liveness: ProcessLiveness | None = None,
    ) -> None:
        """`annotate` makes of an event what a dead-letter node keeps, `frame` of one that is no message what consumers
        get; `selecting` compiles the selectors of commands."""
        limits = limits or RealmLimits()
        self.run, self.kind = run, log.kind
        self.poll_interval_s, self.descriptor = log.poll_interval_s, log.descriptor
        self._answers: list[Answer] = []
        self._workers, worker = workers, workers.control
        journal = Journal(log, prefix, run, clock, worker, limits, self._answer)
        windows = StoreWindows(log, clock, limits, frame)
        self._metadata = metadata = Metadata()
        mistakes = self.mistakes = Mistakes(clock)
        timers = Timers(clock, mistakes)
        alive = liveness or SystemLiveness()
        lease = self._lease = Lease(log, prefix, run, clock, workers.lease, limits, alive, timers, workers.projections)
        journal.confirm, lease.on_lost = lease.confirm, self._fenced
        context = self._context = RealmContext(
            log,
            prefix,
            run,
            clock,
            worker,
            workers.projections,
            limits,
            windows,
            journal,
            self._answer,
            metadata,
            annotate,
            lease,
            ScanBudget(windows, limits.selection_scan, limits.selection_scan_bytes),
            LogEnds(log, worker, limits, journal.known),
            mistakes.alarms,
            mistakes.troubles,
            mistakes,
            timers,
        )
        self._log, self._clock, self._worker, self._journal = log, clock, worker, journal
        self.authorizer = Authorizer(context)
        metadata.on_changed.append(windows.change)
        self._shard = Shard(context)
        self._looks = MetadataLooks(context, self._gone)
        self._watch, self._settings_watch = TopicWatch(context, self._gone), SettingsWatch(context)
        self._creations, self._truncations = NodeCreations(context, self.find_node), Truncations(context, self._shard)
        self._publisher = Publisher(context, self._shard, self._truncations)
        self._diagnosis = Diagnosis(context, self._publisher.evidence)
        self._attestation = Attestation(context, self._publisher.evidence)
        self.event_sizes, self.history = EventSizes(context), self._publisher.history
        self.metrics = RealmMetrics(context, self._shard, self._publisher)
        capacities = self._publisher.capacities
        self._executor = CommandExecutor(context, self._shard, capacities, self._looks.follow, selecting)
        self._lifetimes = DurableLifetimes(context, self._shard, self._executor.works_on)
        self._subscriptions = SubscriptionRegistry(context, self._shard, self.authorizer, self._lifetimes)
        self.temporary = TemporaryNodes(context, self._shard, self._looks.follow)
        self.on_deleted: list[Callable[[Node], None]] = []  # in a turn, once its subscriptions are lost
        self._closed = self._abandoned = False  # abandoned: closed with settlements of unknown result
        self._turn = Turn(context, workers, self._publisher, self._diagnosis)

    def open(self, standby: Standby | None = None) -> None:
        prefix, deadline_s = self._context.prefix, self._context.limits.control_deadline_s
        specs = [TopicSpec(name, compacted=compacted) for name, compacted in realm_topics(prefix).items()]
        self._log.control.create_topics(specs, deadline_s)
        self._settings_watch.open()
        self._lease.acquire(standby)
        try:
            with self._lease.keep():
                self._metadata.fold(read_tail(self._log, realm_topic(prefix), 0))
                self.temporary.sweep()
                self._watch.open()
                self._shard.claim()
                self._truncations.begin()
                self._executor.begin()
                self._lifetimes.begin()
                self.temporary.begin()
        except LogError as error:
            if error.failure.cause not in ("unavailable", "indeterminate"):
                self._lease.release()
            raise

    @property
    def lost(self) -> bool:
        return self._journal.fenced and not self._abandoned

    # -- nodes

    def node(self, name: str) -> Node | None:
        return self._metadata.nodes.get(name)

    def find_node(self, name: str, owner: object) -> None:
        def followed(error: LogError | None) -> None:
            if error is None:
                self._answer(NodeFound(owner, self.node(name), "ready"))
            else:
                self._answer(NodeFound(owner, None, subscribe_answer(error.failure), error.failure.code))

        self._looks.follow(followed)

    def create_node(self, name: str, kind: NodeKind, owner: object) -> None:
        self._creations.begin(name, kind, owner)

    def on_changed(self, listener: Callable[[Node | None], None]) -> None:
        self._metadata.on_changed.append(listener)

    def execute(self, command: Command, owner: object) -> None:
        self._executor.execute(command, owner)

    # -- access

    def refuse(self, node: Node, keys: Strings, values: Strings, owner: object) -> None:
        self._answer(Published(owner, 0, [-1] * len(keys), "access-denied", NOT_GRANTED))

    # -- data

    def publish(self, node: Node, keys: Strings, values: Strings, owner: object) -> None:
        self._watch.used[node.store] = node
        self._publisher.publish(node, keys, values, owner)

    def may_publish(self, node: Node, subject: Subject) -> PostAnswer:
        if not self._metadata.alive(node):
            return "not-found"
        if not self.authorizer.allows(subject, _PUBLISH, node):
            return "access-denied"
        return "capacity-reached" if self._publisher.capacities.full(node) else "ready"

    def commit(self, settlements: list[Settlement], postings: Sequence[Posting], owner: object) -> None:
        self._watch.used.update((posting.node.store, posting.node) for posting in postings)
        Commit(self._context, self._publisher.capacities, settlements, postings, owner).begin()

    def append_evidence(self, topic: EvidenceTopic, key: bytes, value: bytes) -> None:
        self._publisher.evidence.append(topic, key, value)

    @property
    def evidence_failed(self) -> int:
        return self._publisher.evidence.failed

    def subscribe(self, request: Subscribe, owner: object) -> None:
        self._subscriptions.begin(request, owner)

    def durables(self) -> list[Durable]:
        return [*self._metadata.durables.values()]

    def find_durables(self, name: DurableName, subject: Subject, owner: object, owned: bool = False) -> None:
        may_end = partial(self.authorizer.allows, subject, SUBSCRIBING["durable"])
        its_own = partial(may_use, self._metadata, subject) if owned else lambda _: True

        def followed(error: LogError | None) -> None:
            if error is None:
                self._answer(self._lifetimes.found(name, owner, may_end, its_own))
            else:
                self._answer(DurablesFound(owner, [], subscribe_answer(error.failure), error.failure.code))

        self._looks.follow(followed)

    def unsubscribe(self, durable: Durable, owner: object) -> None:
        self._lifetimes.unsubscribe(durable, owner)

    # -- turns

    def poll(self) -> list[Answer]:
        if not self._closed:  # the loop may have been woken before
            self._turn.take()
        answers, self._answers[:] = self._answers[:], []
        return answers

    def on_ready(self, wake: Callable[[], None]) -> None:
        self._log.on_ready(wake)
        for worker in self._workers.each():
            worker.on_ready(wake)

    @property
    def busy(self) -> bool:
        publisher = self._publisher
        return bool(
            self._subscriptions
            or publisher.pending
            or publisher.evidence.pending
            or self._journal.busy
            or self._workers.pending
            or self._executor.busy
            or self._answers
        )

    def close(self, deadline_s: float) -> None:
        self.on_ready(lambda: None)  # what was woken is closing, too
        self._context.timers.close()
        self._attestation.hurry()
        self._shard.stop_trimming()
        until_s = self._clock.monotonic_s() + deadline_s
        self._subscriptions.close()
        self.temporary.close()
        self._turn.take()
        while self._unfinished and self._clock.monotonic_s() < until_s:
            self._worker.pause(_PAUSE_S)
            self._turn.take()
        self._publisher.evidence.close()
        if self._journal.busy:
            self._warn_of_unstored()
            self._abandoned = not self._journal.fenced
            self._journal.give_up("closing", "indeterminate")
        for worker in self._workers.each():
            worker.close(max(0.0, until_s - self._clock.monotonic_s()))
        self._shard.close(until_s)
        self._lease.release()
        self._log.close(max(0.5, until_s - self._clock.monotonic_s()))
        self._closed = True

    def _warn_of_unstored(self) -> None:
        settlements = sum(item.owner is not None for item in self._journal.items())
        if settlements:
            _LOG.error(
                "closing with %d settlements of unknown result: their events may be given out again", settlements
            )
        else:
            _LOG.warning("closing before the log stored what this gateway noted of its own acts")

    @property
    def _unfinished(self) -> bool:
        publisher = self._publisher
        evidence = publisher.evidence.pending or self._attestation.owing
        return bool(self._journal.busy or publisher.pending or evidence or self._worker.pending)

    def _answer(self, answer: Answer) -> None:
        if answer.owner is not None:  # a caller asked
            self._answers.append(answer)

    def _fenced(self) -> None:
        if not self._journal.fenced:
            self._journal.give_up("fenced", "fenced")

    # -- nodes that were deleted

    def _gone(self, node: Node) -> None:
        """It was deleted, or its topic is not its own any more."""
        self._lose(node)
        for tell in self.on_deleted:
            tell(node)

    def _lose(self, node: Node) -> None:
        node = node.part(0)
        self._shard.lose(node, "not-found", "deleted")
        self._publisher.forget(node)
        self.event_sizes.forget(node)
        for part in node.parts:
            self._context.ends.forget(part.store)
            self._context.known.forget((part.topic, part.partition))
        self._subscriptions.lose_plain(node.store)
