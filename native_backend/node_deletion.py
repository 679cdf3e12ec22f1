"""A node's end by command: noted in the journal for each of its stores, then the node goes with all it had.

The note ends nothing by itself; it tells whoever reads the journal who wanted it and when. Until the metadata says that
the node is gone, it is there: a command that a kill cut short is given again. May import: the standard library,
`native_backend` below it.
"""

from __future__ import annotations

from collections.abc import Callable

from native_backend.admin import delete_node
from native_backend.durable_changes import Done, refused
from native_backend.log import LogError
from native_backend.nodes import Node
from native_backend.services import Services
from native_backend.settlement import Settlement

Follow = Callable[[Callable[[LogError | None], None]], None]
"""Read metadata to its end, then go on."""


class _Note:
    """Keeper of the note of one store."""

    def __init__(self, deletion: NodeDeletion, part: Node) -> None:
        self._deletion, self._part = deletion, part

    def keys(self) -> tuple[str, str, int]:
        return self._part.name, "", self._part.store

    def settled(self, settlement: Settlement) -> None:
        self._deletion.noted()

    def restore(self, settlement: Settlement) -> None:
        self._deletion.failed()


class NodeDeletion:
    """See the module's docstring. `with_topic`: a topic that was adopted goes, too."""

    def __init__(
        self, services: Services, node: Node, with_topic: bool, cause: str, follow: Follow, done: Done
    ) -> None:
        self._services, self._node, self._with_topic = services, node, with_topic
        self._cause, self._follow, self._done = cause, follow, done
        self._open = node.partitions
        self._failed = False

    def begin(self) -> None:
        for part in self._node.parts:
            note = Settlement(_Note(self, part), None, "delete", False, False, self._cause, [(0, 0, 0, 0)], 0, None)
            self._services.journal.add(note)

    def noted(self) -> None:
        self._open -= 1
        if not self._open:
            services, name, with_topic = self._services, self._node.name, self._with_topic
            services.control.submit(lambda: delete_node(services.log, services.prefix, name, with_topic), self._deleted)

    def failed(self) -> None:
        if not self._failed:
            self._failed = True
            answer, detail = refused(self._services)
            self._done(answer, 0, detail)

    def _deleted(self, was_there: bool | LogError) -> None:
        if isinstance(was_there, LogError):
            self._done("unavailable", 0, f"part of it may be deleted: give the command again: {was_there}")
        elif not was_there:
            self._done("not-found", 0, f"somebody else has deleted node {self._node.name!r}")
        else:  # whoever consumes from it is told before the answer is
            self._follow(lambda _: self._done("done", 0, ""))
