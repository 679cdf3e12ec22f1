"""The shard: every durable and queue whose acknowledgement state this process owns, from claim to last snapshot.

A durable is opened once a process: its store is checked and bounded, and a snapshot marked open is written before its
first event is given, so that a later process knows that events may have been given. May import: the standard library,
`native_backend` below it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from native_backend.acknowledgement import Acknowledgement
from native_backend.answers import SubscribeAnswer
from native_backend.dispatch import Dispatch
from native_backend.durables import (
    QUEUE,
    Durable,
    channel_durable,
    durable_key,
    encode_durable,
    queue_durable,
)
from native_backend.log import Append, Appended, Failure, LogError
from native_backend.metadata import Metadata, realm_topic
from native_backend.nodes import Node
from native_backend.projection import Projector
from native_backend.recovery import States, recover
from native_backend.services import Services, store_bounds
from native_backend.snapshot import encode_snapshot, snapshot_key, state_topic

_LOG = logging.getLogger(__name__)
_PAUSE_S = 0.002
_MARK = snapshot_key(0, "")  # of no store: a tombstone that recovery waits for, so that no earlier snapshot is missed
Opened = Callable[[Dispatch | LogError], None]
Key = tuple[int, str]  # store, durable
Held = tuple[Key, Acknowledgement, bool]


class Shard:
    """See the module's docstring."""

    def __init__(self, services: Services, metadata: Metadata) -> None:
        self._services = services
        self._metadata = metadata
        self._recovered: States = {}
        self._open: dict[Key, Dispatch] = {}
        self._opening: dict[Key, list[Opened]] = {}
        self._projector = Projector(services)
        self._snapshot_due = services.limits.snapshot_records
        services.journal.on_fenced = self._fenced
        metadata.on_changed.append(self._changed)

    def claim(self) -> None:
        """Own the shard, then learn its state. Blocks; raises LogError."""
        services = self._services
        services.log.claim(services.journal.shard, services.limits.control_deadline_s)
        end = services.journal.begin() + 1
        self._await_visible(services.journal.topic, end)
        snapshots = state_topic(services.prefix)
        mark = services.log.put(snapshots, _MARK, None, services.limits.control_deadline_s)
        self._await_visible(snapshots, mark + 1)
        self._recovered = recover(services.log, services.prefix, self._metadata, end)
        services.journal.next = end

    def _await_visible(self, topic: str, end: int) -> None:
        """What is stored may be seen a little later (Kafka writes commit markers after its answer)."""
        services = self._services
        until_s = services.clock.monotonic_s() + services.limits.control_deadline_s
        while services.log.bounds(topic, 0)[1] < end:
            if services.clock.monotonic_s() >= until_s:
                raise LogError(Failure("unavailable", f"{topic} cannot be read up to {end}: a transaction stays open"))
            services.control.pause(_PAUSE_S)

    def opened(self, node: Node, name: str) -> Dispatch | None:
        return self._open.get((node.store, name))

    def opening(self, node: Node, name: str) -> bool:
        return (node.store, name) in self._opening

    def open(self, node: Node, name: str, done: Opened) -> None:
        """`done` with the durable's `Dispatch`; a durable that is not known begins here and now."""
        key = (node.store, name)
        dispatch = self._open.get(key)
        if dispatch is not None:
            done(dispatch)
        elif key in self._opening:
            self._opening[key].append(done)
        else:
            self._opening[key] = [done]
            known = self._metadata.durable(node, name)
            self._services.control.submit(self._opener(node, name, known), lambda found: self._found(key, node, found))

    def advance(self) -> None:
        """Projections and snapshots that are due."""
        journal = self._services.journal
        if journal.fenced:
            return
        self._projector.advance(self._open.values())
        if journal.records >= self._snapshot_due:
            self._snapshot_due = journal.records + self._services.limits.snapshot_records
            for key, value in self._snapshots(self._held(closed=False) + self._idle()):
                self._services.control.submit(self._putter(key, value), _warned)

    def lose(self, node: Node, answer: SubscribeAnswer, native: str) -> None:
        """The node is gone: so are its durables."""
        for key in [key for key in self._open if key[0] == node.store]:
            self._open.pop(key).lose(answer, native)
        for key in [key for key in self._recovered if key[0] == node.store]:
            del self._recovered[key]

    def close(self, until_s: float) -> None:
        """The last snapshots (one batch) and projections. Blocks; failures are logged: nothing depends on either."""
        services = self._services
        if services.journal.fenced:
            return
        snapshots = self._snapshots(self._held(closed=True))
        if snapshots:
            keys, values = [key for key, _ in snapshots], [value for _, value in snapshots]
            services.log.append(Append(state_topic(services.prefix), 0, keys, values, self))
        self._projector.close(self._open.values())
        missing = len(snapshots)
        while missing and services.clock.monotonic_s() < until_s:
            for completion in services.log.poll():
                if isinstance(completion, Appended) and completion.batch.owner is self:
                    missing -= sum(offset >= 0 for offset in completion.offsets)
                    if completion.failure is not None:
                        _LOG.warning("snapshots not written, recovery will read the journal: %s", completion.failure)
                        return
            services.control.pause(_PAUSE_S)

    def _opener(self, node: Node, name: str, known: Durable | None) -> Callable[[], tuple[Durable, int, int]]:
        """The blocking part of opening: bounds, metadata of a new durable, snapshot marked open."""
        services, recovered = self._services, self._recovered.get((node.store, name))
        journal = services.journal.next

        def job() -> tuple[Durable, int, int]:
            first, end = store_bounds(services.log, node, services.limits.control_deadline_s)
            durable = known or _begin(services, node, name, first, end)
            if recovered is None or recovered.closed:
                state = recovered.state if recovered else Acknowledgement(durable.start)
                value = encode_snapshot(node.name, name, node.store, state, journal, closed=False)
                self._putter(snapshot_key(node.store, name), value)()
            return durable, first, end

        return job

    def _found(self, key: Key, node: Node, found: tuple[Durable, int, int] | LogError) -> None:
        waiting = self._opening.pop(key)
        result: Dispatch | LogError
        if isinstance(found, LogError):
            result = found
        elif not self._metadata.alive(node):
            result = LogError(Failure("not-found", f"node {node.name!r} was deleted"))
        else:
            durable, first, end = found
            recovered = self._recovered.pop(key, None)
            state = recovered.state if recovered else Acknowledgement(durable.start)
            lost = state.lose_below(first)
            if lost:
                _LOG.error("node %r, durable %r: %d EIDs lost by retention", node.name, durable.name, lost)
            unclean = recovered is not None and not recovered.closed
            result = Dispatch(self._services, node, durable, state, end if unclean else 0)
            self._open[key] = result
        for done in waiting:
            done(result)

    def _held(self, closed: bool) -> list[Held]:
        """The durables that were opened in this process. One is not closed while events that a killed process may have
        given lie ahead of it."""
        return [
            (key, dispatch.state, closed and dispatch.state.position >= dispatch.again_below)
            for key, dispatch in self._open.items()
        ]

    def _idle(self) -> list[Held]:
        """Those that were not: they have no journal records since, so their state is as good now as when recovered."""
        return [(key, each.state, each.closed) for key, each in self._recovered.items() if key not in self._opening]

    def _snapshots(self, held: list[Held]) -> list[tuple[bytes, bytes]]:
        """Key and value of each, as of the journal as applied now."""
        snapshots = []
        for (store, name), state, closed in held:
            node = self._metadata.stores[store].name
            value = encode_snapshot(node, name, store, state, self._services.journal.next, closed)
            if len(value) <= self._services.limits.snapshot_bytes:
                snapshots.append((snapshot_key(store, name), value))
            else:
                _LOG.warning("snapshot of %r, durable %r, left out: %d bytes", node, name, len(value))
        return snapshots

    def _putter(self, key: bytes, value: bytes) -> Callable[[], int]:
        log, topic = self._services.log, state_topic(self._services.prefix)
        deadline_s = self._services.limits.control_deadline_s
        return lambda: log.put(topic, key, value, deadline_s)

    def _changed(self, node: Node | None) -> None:
        """The durables at work know their node as it is now."""
        if node is not None:
            for (store, _), dispatch in self._open.items():
                if store == node.store:
                    dispatch.node = node

    def _fenced(self) -> None:
        for dispatch in self._open.values():
            dispatch.lose("in-use", "fenced")


def _begin(services: Services, node: Node, name: str, first: int, end: int) -> Durable:
    """A new durable: at the end of a channel; a queue's (should its record be missing) at its beginning."""
    if name == QUEUE:
        durable = queue_durable(services.prefix, node, first)
    else:
        durable = channel_durable(services.prefix, node, name, end)
    value = encode_durable(durable, services.clock.epoch_us())
    services.log.put(
        realm_topic(services.prefix), durable_key(node.name, name), value, services.limits.control_deadline_s
    )
    return durable


def _warned(result: int | LogError) -> None:
    if isinstance(result, LogError):
        _LOG.warning("snapshot not written, recovery will read more of the journal: %s", result)
