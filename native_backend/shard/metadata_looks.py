"""Looks at the realm's metadata: each reads `PREFIX.realm` to its end, and drops what was deleted.

A look answers all that asked before it began, so what they knew to be stored is seen. Who asks after that waits for
the next one, which begins when this one has ended: there are never more than two to wait for, however many ask. A look
that fails has failed for all who wait, with one error; who asks then has a new one. Seconds are monotonic.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from native_backend.dispatch.context import RealmContext
from native_backend.log.port import Failure, LogError, Records
from native_backend.nodes.metadata import read_tail, realm_topic
from native_backend.nodes.node import Node

Then = Callable[[LogError | None], None]


@dataclass(slots=True, eq=False)
class Look:
    """One of them, and what goes on behind it."""

    followers: list[Then]
    has_begun: bool = False
    """Set by the worker before it asks where the log ends. Who reads False has asked before that."""


class MetadataLooks:
    """Of one realm. `lose` is called with each node that was deleted."""

    def __init__(self, context: RealmContext, lose: Callable[[Node], None]) -> None:
        self._context, self._lose = context, lose
        self._look: Look | None = None  # submitted, and not ended
        self._late: list[Then] = []  # they asked when it had begun
        self._timer = context.timers.timer("metadata", self._look_now)
        self._timer.soon()

    def follow(self, then: Then) -> None:
        """Go on behind a look that begins after this call; with its error, where it failed."""
        if self._look is None:
            self._submit([then])
        elif self._look.has_begun:
            self._late.append(then)
        else:
            self._look.followers.append(then)

    def _look_now(self) -> None:
        """One is due by the clock."""
        if self._look is None:
            self._submit([])

    def _submit(self, followers: list[Then]) -> None:
        self._look = look = Look(followers)
        self._context.worker.submit(partial(self._read, look), partial(self._read_done, look))

    def _read(self, look: Look) -> list[Records] | Exception:
        """On the worker. A mistake of ours is returned, too: raised there, it would leave this look under way."""
        look.has_begun = True
        context = self._context
        try:
            return read_tail(context.log, realm_topic(context.prefix), context.metadata.position)
        except LogError:
            raise
        except Exception as mistake:
            return mistake

    def _read_done(self, look: Look, records: list[Records] | Exception) -> None:
        context = self._context
        self._timer.after(context.limits.metadata_interval_s)
        error = self._take_in(records)
        followers, late = look.followers, self._late
        self._look, self._late = None, []
        if error is not None:
            followers += late
        elif late:
            self._submit(late)
        for then in followers:
            try:
                then(error)
            except Exception:
                context.mistakes.note("what waited for the realm's metadata could not go on")

    def _take_in(self, records: list[Records] | Exception) -> LogError | None:
        context = self._context
        try:
            if isinstance(records, Exception):
                raise records
            gone = context.metadata.fold(records)
        except LogError as error:
            context.troubles.begin("metadata-unread", str(error))
            return error
        except Exception:
            fault = context.mistakes.note("the realm's metadata could not be taken in")
            context.troubles.begin("metadata-unread", fault)
            return LogError(Failure("unexpected", fault))
        context.troubles.end("metadata-unread")
        for node in gone:
            try:
                self._lose(node)
            except Exception:
                context.mistakes.note("what a deleted node had could not be ended")
        return None
