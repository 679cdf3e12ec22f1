"""The shard: every durable and queue whose acknowledgement state this process owns, from claim to last snapshot.

A durable is opened once a process: its store is checked and bounded, and a snapshot marked open is written before its
first event is given, so that a later process knows that events may have been given.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from functools import partial

from native_backend.dispatch.context import RealmContext, certain_bounds
from native_backend.dispatch.dispatcher import Dispatcher
from native_backend.dispatch.retention_loss import lose_below
from native_backend.journal.recovery import States, recover
from native_backend.journal.snapshot import Key, StateCopy, snapshot_key, state_topic
from native_backend.log.port import Failure, LogError
from native_backend.nodes.durable import QUEUE, Durable, durable_key
from native_backend.nodes.durable_terms import DurableTerms
from native_backend.nodes.metadata import realm_topic
from native_backend.nodes.node import Node
from native_backend.nodes.words import SubscribeAnswer
from native_backend.shard.counting import Counting
from native_backend.shard.depths import Depths
from native_backend.shard.durable_records import Beginning, begin_durable, write_durable
from native_backend.shard.eviction import evict
from native_backend.shard.evidence_trimmer import EvidenceTrimmer
from native_backend.shard.group_offset_writer import GroupOffsetWriter
from native_backend.shard.journal_ends import JournalEnds
from native_backend.shard.queue_trimmer import QueueTrimmer
from native_backend.shard.snapshot_writer import SnapshotWriter, Stored
from native_backend.state.ack_state import AckState

_LOG = logging.getLogger(__name__)
_PAUSE_S = 0.002
_CLAIMS = 5
_QUEUES = Beginning()
_MARK = snapshot_key(0, "")  # of no store: a tombstone that recovery waits for, so that no earlier snapshot is missed
Opened = Callable[[Dispatcher | LogError], None]
Found = tuple[Durable, int, int, Stored]  # and where its store begins and ends, and the snapshot written


class Shard:
    """See the module's docstring."""

    def __init__(self, context: RealmContext) -> None:
        self._context = context
        self._metadata = context.metadata
        self._recovered: States = {}
        self._open: dict[Key, Dispatcher] = {}
        self._opening: dict[Key, list[Opened]] = {}
        self._beginning: dict[Key, DurableTerms] = {}  # while it is being opened
        self._expected: Counter[Key] = Counter()  # links on their way, to all stores of a durable
        self._deleting: dict[Key, list[Callable[[LogError | None], None]]] = {}  # and who waits for that
        self._delete_failed: set[Key] = set()  # could not be erased: who comes next does that, or the next start
        self.counting = Counting(context, self.state)
        self.depths = Depths(context, self)
        self._group_offsets = GroupOffsetWriter(context, self.depths)
        self._queue_trimmer = QueueTrimmer(context, self.low_watermarks)
        self._evidence_trimmer = EvidenceTrimmer(context, self._needed)
        self._closing = False
        self.on_opened: Callable[[Dispatcher], None] = lambda _: None
        self.snapshots = SnapshotWriter(context, lambda: [*self._open, *self._recovered], self._freeze)
        self._journal_ends = JournalEnds(context, self.snapshots)
        context.journal.on_fenced = self._fenced
        context.journal.on_shorter = lambda missing: self._journal_ends.noticed(missing, self.states())
        context.journal.on_stored = self.counting.stored
        context.metadata.on_changed.append(self._changed)

    def claim(self) -> None:
        """Own the shard, then learn its state. Blocks; raises LogError."""
        context = self._context
        end = self._fence() + 1
        self._await_visible(context.journal.topic, end)
        topic = state_topic(context.prefix)
        mark = context.log.control.put(topic, _MARK, None, context.limits.control_deadline_s)
        self._await_visible(topic, mark + 1)
        recovery = recover(context.log, context.prefix, self._metadata, end, context.limits.recovery_records)
        self._recovered = recovery.states
        self.snapshots.begin(recovery)
        context.journal.next = end
        self._journal_ends.check(recovery, end, self._recovered)
        for (store, name), recovered in [*self._recovered.items()]:
            if recovered.deleted:  # and the process that did it was killed
                durable = self._metadata.durable(self._metadata.stores[store].part(0), name)
                if durable is not None:  # else it went with another of its stores
                    self.erase(durable)
                    self._forget(durable)
                del self._recovered[store, name]

    def _fence(self) -> int:
        """Claim, and write the first record. Who was not the owner any more may have claimed once again meanwhile."""
        journal, deadline_s = self._context.journal, self._context.limits.control_deadline_s
        for _ in range(_CLAIMS):
            self._context.lease.confirm(deadline_s)  # nothing is given out yet: a broker may stand still for a moment
            try:
                self._context.log.control.claim(journal.shard, deadline_s)
                return journal.begin()
            except LogError as error:
                if error.failure.cause != "fenced":
                    raise
        raise LogError(Failure("fenced", f"something else claims {journal.shard} again and again"))

    def _await_visible(self, topic: str, end: int) -> None:
        """What is stored may be seen a little later (Kafka writes commit markers after its answer)."""
        context = self._context
        until_s = context.clock.monotonic_s() + context.limits.control_deadline_s
        while context.log.control.bounds(topic, 0)[1] < end:
            if context.clock.monotonic_s() >= until_s:
                raise LogError(Failure("unavailable", f"{topic} cannot be read up to {end}: a transaction stays open"))
            context.worker.pause(_PAUSE_S)

    def opened(self, node: Node, name: str) -> Dispatcher | None:
        return self._open.get((node.store, name))

    def expect(self, node: Node, name: str) -> None:
        """A link is on its way to that durable of the whole node, until it has `arrived`."""
        self._expected[node.store, name] += 1

    def arrived(self, node: Node, name: str) -> None:
        """It has links now, or will have none."""
        self._expected[node.store, name] -= 1
        if not self._expected[node.store, name]:
            del self._expected[node.store, name]

    def terms(self, node: Node, name: str) -> DurableTerms | None:
        """On which a durable is held, or is about to be; None where there is none. Of the node's first store."""
        if (node.store, name) in self._deleting or (node.store, name) in self._delete_failed:
            return None
        dispatch, known = self._open.get((node.store, name)), self._metadata.durable(node, name)
        beginning = self._beginning.get((node.store, name))
        return dispatch.durable.terms if dispatch is not None else known.terms if known is not None else beginning

    def change(self, dispatch: Dispatcher, durable: Durable, done: Callable[[LogError | None], None]) -> None:
        """Other terms, or an owner, from now on."""
        context = self._context

        def written(result: int | LogError) -> None:
            if isinstance(result, LogError):
                done(result)
                return
            dispatch.durable = durable
            self._metadata.remember(durable)
            done(None)

        context.worker.submit(lambda: write_durable(context, durable), written)

    def open(self, node: Node, name: str, done: Opened, begins: Beginning = _QUEUES) -> None:
        """`done` with the durable's `Dispatcher`; a durable that is not known `begins` so."""
        key, whole = (node.store, name), (node.part(0).store, name)
        dispatch = self._open.get(key)
        ended = self._metadata.durable(node.part(0), name)
        if ended is not None and whole in self._delete_failed and whole not in self._deleting:
            self.delete(ended, lambda _: None)  # the journal has its end: only the erasing is left
        if whole in self._deleting:
            anew = partial(self.open, node, name, done, begins)
            self._deleting[whole].append(lambda error: done(error) if error else anew())
        elif dispatch is not None:
            done(dispatch)
        elif key in self._opening:
            self._opening[key].append(done)
        else:
            self._opening[key] = [done]
            self._beginning[key] = begins.terms
            opener = self._opener(node, name, self._metadata.durable(node.part(0), name), begins)
            self._context.worker.submit(opener, lambda reply: self._found(key, node, reply))

    def stop_trimming(self) -> None:
        """After what is under way."""
        self._queue_trimmer.stop()

    def _needed(self) -> int | None:
        """Of the journal. A durable that is being opened is about to have its first snapshot; one without any (its
        record is lost) needs whatever there is until the next round."""
        if self._opening or not self.snapshots.covers((*self._open, *self._recovered)):
            return None
        return self.snapshots.needed

    def state(self, store: int, name: str) -> AckState | None:
        """As far as it is known; None: the durable was never opened."""
        dispatch, recovered = self._open.get((store, name)), self._recovered.get((store, name))
        return dispatch.state if dispatch is not None else recovered.state if recovered is not None else None

    def low_watermarks(self) -> list[tuple[Node, int]]:
        """Every queue that was ever consumed, and the EID below which all has ended."""
        nodes = self._metadata.stores
        return [
            (nodes[key[0]], state.low) for key, state in self.states().items() if key[1] == QUEUE and key[0] in nodes
        ]

    def states(self) -> dict[Key, AckState]:
        """Of every durable that is known."""
        states = {key: recovered.state for key, recovered in self._recovered.items()}
        states.update((key, dispatch.state) for key, dispatch in self._open.items())
        return states

    def evict(self, store: int, bound: int) -> None:
        """The journal holds that everything below is given up, for all durables of the store. Before the log lets go of
        it there are snapshots: recovery takes the note for a durable that has one."""
        new = evict(self._metadata, self._open, self._recovered, store, bound, self._context.journal.next)
        if new:
            self._context.journal.afterwards(lambda: self.snapshots.write_first(new))

    def cut(self, store: int, name: str, end: int) -> None:
        """The journal holds that the store of a durable has become shorter."""
        dispatch, recovered = self._open.get((store, name)), self._recovered.get((store, name))
        if dispatch is not None:
            dispatch.cut(end)
        elif recovered is not None:
            recovered.state.cut(end)
        self.snapshots.soon((store, name))  # an earlier release can read the state, and not the note

    def resume(self, store: int, end: int) -> None:
        """The durables of a store that was cut go on."""
        for key, dispatch in self._open.items():
            if key[0] == store:
                dispatch.resume(end)

    def lose(self, node: Node, answer: SubscribeAnswer, native: str) -> None:
        """The node is gone: so are its durables."""
        stores = {part.store for part in node.parts}
        for key in [key for key in self._open if key[0] in stores]:
            self._open.pop(key).lose(answer, native)
        for key in [key for key in self._recovered if key[0] in stores]:
            del self._recovered[key]
        for store in stores:
            self.snapshots.forget(store)
        self._group_offsets.forget_topic(node.topic)

    def is_in_use(self, store: int, name: str) -> bool:
        """Whether a durable has links, is getting one, or is being deleted."""
        key, dispatch = (store, name), self._open.get((store, name))
        coming = key in self._opening or key in self._expected
        return key in self._deleting or coming or (dispatch is not None and bool(dispatch.links))

    def is_being_deleted(self, store: int, name: str) -> bool:
        """Whether it is about to be deleted, or is being."""
        return (store, name) in self._deleting

    def begin_delete(self, store: int, name: str) -> None:
        """It is about to be deleted: who wants to open it waits, and begins anew."""
        self._deleting.setdefault((store, name), [])

    def end_delete(self, store: int, name: str, error: LogError | None = None) -> None:
        """It is deleted, or will not be."""
        for waiting in self._deleting.pop((store, name), []):
            waiting(error)

    def delete(self, durable: Durable, done: Callable[[LogError | None], None]) -> None:
        """The journal has its end: links, snapshot, group and metadata go. No link can begin it anew meanwhile."""
        key = (durable.store, durable.name)
        self.begin_delete(*key)
        self._group_offsets.forget(durable.group)
        for store in self._stores(durable):
            dispatch = self._open.pop((store, durable.name), None)
            if dispatch is not None:
                dispatch.lose("not-found", "deleted")
            self._recovered.pop((store, durable.name), None)

        def erased(result: LogError | None) -> None:
            if result is None:
                self._forget(durable)
                self._delete_failed.discard(key)
            else:
                self._delete_failed.add(key)
            done(result)
            self.end_delete(*key, result)

        self._context.worker.submit(lambda: self.erase(durable), erased)

    def _forget(self, durable: Durable) -> None:
        self._group_offsets.forget(durable.group)
        for store in self._stores(durable):
            self.snapshots.forget(store, durable.name)
        self._metadata.durables.pop((durable.node, durable.name), None)

    def _stores(self, durable: Durable) -> list[int]:
        node = self._metadata.stores.get(durable.store)
        return [part.store for part in node.parts] if node is not None else [durable.store]

    def erase(self, durable: Durable) -> None:
        """Blocks; raises LogError. Until the metadata has gone recovery begins this again; it finds it by a snapshot:
        those go last."""
        log, prefix, deadline_s = self._context.log, self._context.prefix, self._context.limits.control_deadline_s
        log.control.forget(durable.group, deadline_s)
        log.control.put(realm_topic(prefix), durable_key(durable.node, durable.name), None, deadline_s)

    def close(self, until_s: float) -> None:
        """The last snapshots and projections. Blocks; failures are logged: nothing depends on either."""
        if self._context.journal.fenced:
            return
        self._closing = True
        self.snapshots.close(self._open, until_s)
        self.counting.finish(until_s)
        self._group_offsets.close(until_s)

    def _opener(self, node: Node, name: str, known: Durable | None, begins: Beginning) -> Callable[[], Found]:
        """The blocking part of opening: bounds, metadata of a new durable, snapshot marked open."""
        context, recovered = self._context, self._recovered.get((node.store, name))
        journal = context.journal.next
        write = self.snapshots.writer(node.store, name)
        position = recovered.state.position if recovered else known.of(node).start if known else 0

        def job() -> Found:
            first, end = certain_bounds(context, node, position)
            whole = known or begin_durable(context, node, name, journal, begins)
            durable = whole.of(node)
            end = end if known else max(end, durable.start)  # it begins behind all that is stored, if shown or not
            if recovered is not None and not recovered.closed:
                return whole, first, end, {}
            state = recovered.state if recovered else AckState(durable.start)
            copy = StateCopy(node.name, name, node.store, _since(durable, journal), False, state)
            return whole, first, end, write(copy)

        return job

    def _found(self, key: Key, node: Node, reply: Found | LogError) -> None:
        waiting = self._opening.pop(key)
        del self._beginning[key]
        result: Dispatcher | LogError
        if isinstance(reply, LogError):
            result = reply
        elif not self._metadata.alive(node) or (node.part(0).store, key[1]) in self._deleting:
            result = LogError(Failure("not-found", f"node {node.name!r} or durable {key[1]!r} was deleted"))
        else:
            whole, first, end, stored = reply
            self.snapshots.stored(stored)
            self._metadata.remember(whole)
            durable = whole.of(node)
            recovered = self._recovered.pop(key, None)
            state = recovered.state if recovered else AckState(durable.start)
            lose_below(self._context, node, durable.name, state, first)
            unclean = recovered is not None and not recovered.closed
            result = Dispatcher(self._context, node, durable, state, end if unclean else 0)
            self._open[key] = result
            self._compare(result, end)
        for done in waiting:
            done(result)

    def _compare(self, dispatch: Dispatcher, end: int) -> None:
        """With where its store ends."""
        position, place = dispatch.state.position, (dispatch.node.topic, dispatch.node.partition)
        self.on_opened(dispatch)
        if position > end:
            self._context.known.looked(place, end, position, self._context.known.cuts(place))
        else:
            self._context.known.reached(place, end)

    def _freeze(self, key: Key) -> StateCopy | None:
        """The durable as of now. One that was opened is not closed while events that a killed process may have given
        lie ahead of it; one that was not has no journal records since it was recovered."""
        assert not self._context.journal.applying, "the copy would name an offset whose record is applied in part"
        store, name = key
        node = self._metadata.stores.get(store)
        dispatch, recovered = self._open.get(key), self._recovered.get(key)
        if node is None or key in self._opening:
            return None
        if dispatch is not None:
            state = dispatch.state
            closed = self._closing and state.position >= dispatch.redelivered_below
        elif recovered is not None:
            state, closed = recovered.state, recovered.closed
        else:
            return None
        durable = dispatch.durable if dispatch is not None else self._metadata.durable(node.part(0), name)
        journal = self._context.journal.next
        return StateCopy(node.name, name, store, _since(durable, journal) if durable else journal, closed, state.copy())

    def _changed(self, node: Node | None) -> None:
        """The durables at work know their node as it is now."""
        if node is not None:
            for (store, _), dispatch in self._open.items():
                if store == node.store:
                    dispatch.node = node

    def _fenced(self) -> None:
        for dispatch in self._open.values():
            dispatch.lose("in-use", "fenced")


def _since(durable: Durable, journal: int) -> int:
    """As of where a snapshot of it is: `journal`, but not before it began. An adopted queue begins where the journal
    ended, which is behind the mark of a transaction, beyond the last record that its owner knows."""
    return max(durable.journal, journal)
