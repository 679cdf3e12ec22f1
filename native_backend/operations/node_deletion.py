"""A node's end by command: noted in the journal for each of its stores, then the node goes with all it had.

The note ends nothing by itself; it tells readers of the journal which command wanted it, and when. Until the metadata
says that the node is gone, it is there: a command that a kill cut short is given again.
"""

from __future__ import annotations

from collections.abc import Callable

from native_backend.dispatch.context import RealmContext
from native_backend.journal.each_store import EachStore
from native_backend.log.port import LogError
from native_backend.nodes.admin import delete_node
from native_backend.nodes.node import Node
from native_backend.operations.durable_changes import Done, refused

Follow = Callable[[Callable[[LogError | None], None]], None]
"""Read metadata to its end, then go on."""


class NodeDeletion:
    """See the module's docstring. `with_topic`: a topic that was adopted goes, too."""

    def __init__(
        self, context: RealmContext, node: Node, with_topic: bool, cause: str, follow: Follow, done: Done
    ) -> None:
        self._context, self._node, self._with_topic = context, node, with_topic
        self._cause, self._follow, self._done = cause, follow, done

    def begin(self) -> None:
        notes = {(part.name, "", part.store): (0, 0, 0, 0) for part in self._node.parts}
        EachStore(self._context.journal, self._noted, self._failed).note("delete", self._cause, notes)

    def _noted(self) -> None:
        context, name, with_topic = self._context, self._node.name, self._with_topic
        context.worker.submit(lambda: delete_node(context.log, context.prefix, name, with_topic), self._deleted)

    def _failed(self) -> None:
        answer, detail = refused(self._context)
        self._done(answer, 0, detail)

    def _deleted(self, was_there: bool | LogError) -> None:
        if isinstance(was_there, LogError):
            self._done("unavailable", 0, f"part of it may be deleted: give the command again: {was_there}")
        elif not was_there:
            self._done("not-found", 0, f"another process has deleted node {self._node.name!r}")
        else:  # its consumers lose their links before the answer
            self._follow(lambda _: self._done("done", 0, ""))
