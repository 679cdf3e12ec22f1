"""What a command does to one durable (a queue's state is one, too): purge it, move its place, delete it.

Each goes through the journal like a settlement, with runs whose first seq is 0: no link was given these events now.

* purge: everything that no link has becomes terminal, in pieces of at most `journal_runs` runs;
* seek: everything below an EID is terminal, everything from it on is to be given, as if for the first time;
* delete: the links end (not-found), then snapshot, group and metadata go. Until the metadata has gone, recovery does
  it again.
"""

from __future__ import annotations

from collections.abc import Callable

from native_backend.dispatch.context import RealmContext, shown_bounds
from native_backend.dispatch.dispatcher import Dispatcher
from native_backend.journal.each_store import EachStore
from native_backend.journal.settlement import Keeper, Settlement
from native_backend.log.port import LogError
from native_backend.nodes.durable import Durable
from native_backend.nodes.node import Node
from native_backend.nodes.words import CommandAnswer, Operation
from native_backend.shard.shard import Shard
from native_backend.state.ack_state import Run

Done = Callable[[CommandAnswer, int, str], None]
"""Answer, EIDs concerned, detail."""


def _settlement(keeper: Keeper, operation: Operation, runs: list[Run], cause: str) -> Settlement:
    count = sum(last - first + 1 for first, last, _, _ in runs)
    return Settlement(keeper, None, operation, False, False, cause, runs, count, None)


def refused(context: RealmContext) -> tuple[CommandAnswer, str]:
    """What the journal's refusal means to the caller."""
    if context.journal.fenced:
        return "in-use", "another process owns the realm now"
    return "unexpected", "the journal could not keep it; the owner's log says why"


def with_bounds(context: RealmContext, node: Node, done: Done, begin: Callable[[int, int], None]) -> None:
    """Begin once the first kept EID and the end of the store are known, or answer that the log does not show them."""

    def bounded(bounds: tuple[int, int] | LogError) -> None:
        if isinstance(bounds, LogError):
            done("unavailable", 0, str(bounds))
        else:
            begin(*bounds)

    context.worker.submit(lambda: shown_bounds(context, node), bounded)


class Purge:
    """Keeper of a purge's pieces."""

    def __init__(self, context: RealmContext, dispatch: Dispatcher, cause: str, done: Done) -> None:
        self._context, self._dispatch, self._cause, self._done = context, dispatch, cause, done
        self._below = 0
        self._count = 0

    def begin(self, below: int) -> None:
        """Of what is there now; with `below` not 0, of what lies below that EID."""

        def bounded(_: int, end: int) -> None:
            self._below = min(below, end) if below else end
            self._next()

        with_bounds(self._context, self._dispatch.node, self._done, bounded)

    def _next(self) -> None:
        runs = self._dispatch.withdraw(self._below, self._context.limits.journal_runs)
        if runs:
            self._context.journal.add(_settlement(self, "purge", runs, self._cause))
        else:
            held = sum(link.outstanding.count() for link in self._dispatch.links)
            self._done("done", self._count, f"{held} events that consumers have stay theirs" if held else "")

    def keys(self) -> tuple[str, str, int]:
        return self._dispatch.keys()

    def settled(self, settlement: Settlement) -> None:
        self._dispatch.settled(settlement)
        self._count += settlement.count
        self._next()

    def restore(self, settlement: Settlement) -> None:
        self._dispatch.restore(settlement)
        answer, detail = refused(self._context)
        self._done(answer, self._count, detail)


class Seek:
    """Keeper of a seek. From the question for the bounds on nothing is given, so that no link has an event then. What
    links had before and the journal gets later would be settled behind the seek, and undo it in part: it is refused."""

    def __init__(self, context: RealmContext, dispatch: Dispatcher, cause: str, done: Done) -> None:
        self._context, self._dispatch, self._cause, self._done = context, dispatch, cause, done

    def begin(self, eid: int) -> None:
        """To the first event at or above `eid`; not before what is kept, not beyond the end."""

        def bounded(first: int, end: int) -> None:
            held = self._dispatch.held()
            if held:
                self._refuse("in-use", 0, f"{held} events are in a transaction or are becoming dead letters: try again")
                return
            place = min(max(eid, first), end)
            self._context.journal.add(_settlement(self, "seek", [(place, place, 0, place)], self._cause))

        self._dispatch.moving = True
        with_bounds(self._context, self._dispatch.node, self._refuse, bounded)

    def _refuse(self, answer: CommandAnswer, count: int, detail: str) -> None:
        """All goes on as before."""
        self._dispatch.moving = False
        self._done(answer, count, detail)

    def keys(self) -> tuple[str, str, int]:
        return self._dispatch.keys()

    def settled(self, settlement: Settlement) -> None:
        before = self._dispatch.state.position
        self._dispatch.settled(settlement)
        self._dispatch.rewind(before)
        place = settlement.runs[0][0]
        self._done("done", abs(before - place), f"the next event is {place} or the first one after it")

    def restore(self, settlement: Settlement) -> None:
        answer, detail = refused(self._context)
        self._refuse(answer, 0, detail)


class Deletion:
    """A durable's end in all stores of its node."""

    def __init__(
        self, context: RealmContext, shard: Shard, node: Node, durable: Durable, cause: str, done: Done
    ) -> None:
        self._context, self._shard, self._cause, self._done = context, shard, cause, done
        self._node, self._durable = node, durable

    def begin(self) -> None:
        """The start in its note is no event: recovery looks at the operation only."""
        ends = [self._durable.of(part) for part in self._node.parts]
        notes = {(end.node, end.name, end.store): (end.start, end.start, 0, end.start) for end in ends}
        EachStore(self._context.journal, self._ended, self._failed).note("delete", self._cause, notes)

    def _ended(self) -> None:
        self._shard.delete(self._durable, self._erased)

    def _erased(self, error: LogError | None) -> None:
        if error is None:
            self._done("done", 0, "")
        else:
            then = "the next one to ask for it, or the next start, does that"
            self._done("unavailable", 0, f"it is deleted, but not yet erased; {then}: {error}")

    def _failed(self) -> None:
        """The journal has not kept it; where it has for other stores, the next start does the rest."""
        self._shard.end_delete(self._durable.store, self._durable.name)
        answer, detail = refused(self._context)
        self._done(answer, 0, detail)
