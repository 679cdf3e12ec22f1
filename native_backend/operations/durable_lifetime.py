"""How durables end that no operator deletes: unsubscribed by their own, or lapsed.

A durable lapses when the scope that its terms name (link, session, connection) has ended for every link that it had,
and its time-out has passed since. A link that comes in time stops that, and the time begins anew when the link goes. A
killed process has ended all its scopes: the time then begins with the next process. Either way the end goes through the
journal as an operator's does. A link that attaches to the same durable meanwhile waits and begins a new one.
Source: semantics.md 2.L-2, 3.3; AMQP 1.0 part 3, 3.5.6.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable

from native_backend.access.durable_owner import NOT_OWNED
from native_backend.dispatch.context import RealmContext
from native_backend.journal.snapshot import Key
from native_backend.nodes.answers import Commanded, DurablesFound
from native_backend.nodes.durable import Durable, DurableName
from native_backend.nodes.node import Node
from native_backend.nodes.words import CommandAnswer
from native_backend.operations.durable_changes import Deletion
from native_backend.shard.shard import Shard

_LOG = logging.getLogger(__name__)
_AGAIN_S = 0.001
IN_USE = "it has consumers, or is being worked on"


class DurableLifetimes:
    """See the module's docstring. `busy` says whether a command is at work on a durable."""

    def __init__(self, context: RealmContext, shard: Shard, busy: Callable[[int, str], bool]) -> None:
        self._context, self._metadata, self._shard, self._busy = context, context.metadata, shard, busy
        self._holds: Counter[Key] = Counter()
        self._due: dict[Key, tuple[float, Durable]] = {}  # monotonic seconds
        self._timer = context.timers.timer("ends of durables", self._end_due)

    def begin(self) -> None:
        """What an earlier process left behind."""
        for durable in list(self._metadata.durables.values()):
            if durable.terms.expiry != "never" and durable.store in self._metadata.stores:
                self._start(durable)

    def held(self, durable: Durable) -> None:
        """One more link, whose scope lives."""
        key = durable.store, durable.name
        self._holds[key] += 1
        self._due.pop(key, None)

    def released(self, durable: Durable) -> None:
        """The scope of one of its links has ended."""
        key = durable.store, durable.name
        self._holds[key] -= 1
        if self._holds[key] <= 0:
            del self._holds[key]
            known = self._metadata.durables.get((durable.node, durable.name))
            if known is not None and known.store == durable.store and known.terms.expiry != "never":
                self._start(known)

    def _end_due(self) -> None:
        """One that is in use, or being worked on, is looked at again soon."""
        if self._context.journal.fenced:
            return
        now_s = self._context.clock.monotonic_s()
        for key, (due_s, durable) in list(self._due.items()):
            if now_s >= due_s and not self._shard.is_in_use(*key) and not self._busy(*key):
                del self._due[key]
                self._lapse(durable)
        if self._due:
            soonest_s = min(due_s for due_s, _ in self._due.values())
            self._timer.by(max(soonest_s, now_s + _AGAIN_S))

    def found(
        self, name: DurableName, owner: object, allowed: Callable[[Node], bool], its_own: Callable[[Durable], bool]
    ) -> DurablesFound:
        """The durables of that name, on whatever nodes, but for those of other users."""
        named = self.named(name)
        durables = [durable for durable in named if its_own(durable)]
        nodes = [self._metadata.stores[durable.store] for durable in durables]
        if not named:
            return DurablesFound(owner, [], "not-found")
        if not all(allowed(node) for node in nodes):
            return DurablesFound(owner, [], "access-denied", "not-granted")
        if not durables:
            return DurablesFound(owner, [], "access-denied", NOT_OWNED)
        if any(self._shard.is_in_use(durable.store, durable.name) for durable in durables):
            return DurablesFound(owner, [], "in-use")
        return DurablesFound(owner, durables, "ready")

    def named(self, name: DurableName) -> list[Durable]:
        """On whatever channels; not those that are ending."""
        return [durable for durable in self._metadata.durables.values() if name.means(durable) and self._lives(durable)]

    def _lives(self, durable: Durable) -> bool:
        return (
            durable.store in self._metadata.stores
            and self._metadata.stores[durable.store].kind == "channel"
            and not self._shard.is_being_deleted(durable.store, durable.name)
        )

    def unsubscribe(self, durable: Durable, owner: object) -> None:
        """Answered by `Commanded`: in-use while it has links, or where another user owns that name since it was
        found."""
        key, known = (durable.store, durable.name), self._metadata.durables.get((durable.node, durable.name))
        if known is not None and known.owner != durable.owner:
            self._context.answer(Commanded(owner, "in-use", 0, "its owner has changed"))
            return
        if self._shard.is_in_use(*key) or self._busy(*key):
            self._context.answer(Commanded(owner, "in-use", 0, IN_USE))
            return
        self._due.pop(key, None)

        def done(answer: CommandAnswer, _: int, detail: str) -> None:
            self._context.answer(Commanded(owner, answer, 0, detail))

        self._end(durable, "unsubscribed", done)

    def renew(self, durable: Durable) -> None:
        """It has no links, and the next link wants another durable of that name: for other events, or on another
        node."""

        def done(answer: CommandAnswer, _: int, detail: str) -> None:
            if answer != "done":
                _LOG.warning("durable %r of %r could not be replaced: %s", durable.name, durable.node, detail)

        self._due.pop((durable.store, durable.name), None)
        self._end(durable, "renewed", done)

    def _start(self, durable: Durable) -> None:
        due_s = self._context.clock.monotonic_s() + durable.terms.timeout_s
        self._due[durable.store, durable.name] = due_s, durable
        self._timer.by(due_s)

    def _lapse(self, durable: Durable) -> None:
        def done(answer: CommandAnswer, _: int, detail: str) -> None:
            if answer == "done":
                _LOG.info("durable %r of %r has lapsed", durable.name, durable.node)
            elif not self._context.journal.fenced:
                _LOG.warning("durable %r of %r has lapsed, but: %s", durable.name, durable.node, detail)

        self._end(durable, "lapsed", done)

    def _end(self, durable: Durable, cause: str, done: Callable[[CommandAnswer, int, str], None]) -> None:
        node = self._metadata.stores.get(durable.store)
        if node is None or self._metadata.durable(node, durable.name) is None:
            done("not-found", 0, "it is deleted already")
            return
        self._shard.begin_delete(durable.store, durable.name)
        Deletion(self._context, self._shard, node, durable, cause, done).begin()
