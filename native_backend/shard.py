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
from native_backend.log import Failure, LogError
from native_backend.metadata import Metadata, realm_topic
from native_backend.nodes import Node
from native_backend.projection import Projector
from native_backend.recovery import States, recover
from native_backend.services import Services, store_bounds
from native_backend.snapshot import encode_snapshot, snapshot_key, state_topic

_LOG = logging.getLogger(__name__)
_PAUSE_S = 0.002
Opened = Callable[[Dispatch | LogError], None]
Key = tuple[int, str]  # store, durable


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

    def claim(self) -> None:
        """Own the shard, then learn its state. Blocks; raises LogError."""
        services = self._services
        services.log.claim(services.journal.shard, services.limits.control_deadline_s)
        end = services.journal.begin() + 1
        self._await_visible(services.journal.topic, end)
        self._recovered = recover(services.log, services.prefix, self._metadata, end)
        services.journal.next = end

    def _await_visible(self, topic: str, end: int) -> None:
        """A committed record may be seen a little later (Kafka writes its markers after the answer)."""
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
            for topic, key, value in self._snapshots(closed=False):
                self._services.control.submit(self._putter(topic, key, value), _warned)

    def lose(self, node: Node, answer: SubscribeAnswer, native: str) -> None:
        """The node is gone: so are its durables."""
        for key in [key for key in self._open if key[0] == node.store]:
            self._open.pop(key).lose(answer, native)
        for key in [key for key in self._recovered if key[0] == node.store]:
            del self._recovered[key]

    def close(self) -> None:
        """The last snapshots and projections. Blocks; failures are logged, for nothing depends on either."""
        if self._services.journal.fenced:
            return
        for topic, key, value in self._snapshots(closed=True):
            try:
                self._putter(topic, key, value)()
            except LogError as error:
                _warned(error)
        self._projector.commit(self._projector.changes(self._open.values()))

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
                self._putter(state_topic(services.prefix), snapshot_key(node.store, name), value)()
            return durable, first, end

        return job

    def _found(self, key: Key, node: Node, found: tuple[Durable, int, int] | LogError) -> None:
        waiting = self._opening.pop(key)
        result: Dispatch | LogError
        if isinstance(found, LogError):
            result = found
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

    def _snapshots(self, closed: bool) -> list[tuple[str, bytes, bytes]]:
        """Every open durable as it is now, and as of the journal as applied now."""
        journal, topic = self._services.journal.next, state_topic(self._services.prefix)
        writes = []
        for (store, name), dispatch in self._open.items():
            value = encode_snapshot(dispatch.node.name, name, store, dispatch.state, journal, closed)
            if len(value) <= self._services.limits.snapshot_bytes:
                writes.append((topic, snapshot_key(store, name), value))
            else:
                _LOG.warning("snapshot of %r, durable %r, left out: %d bytes", dispatch.node.name, name, len(value))
        return writes

    def _putter(self, topic: str, key: bytes, value: bytes) -> Callable[[], int]:
        log, deadline_s = self._services.log, self._services.limits.control_deadline_s
        return lambda: log.put(topic, key, value, deadline_s)

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
