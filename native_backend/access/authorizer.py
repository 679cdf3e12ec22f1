"""Authorization: whether a subject may do something now, by the realm's grants and, where configured, by the access
lists that the log keeps for its own users (both must allow it).

The log's lists are read before they count the first time, and then every few seconds. Source: kafka.md section 8, ADR
0029.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

from native_backend.dispatch.context import RealmContext
from native_backend.log.access_lists import AccessLists, Operation
from native_backend.log.port import LogError
from native_backend.nodes.grants import ANONYMOUS, Subject, deciding_grant
from native_backend.nodes.node import Node

LOG_ANONYMOUS: Final = "ANONYMOUS"
"""Kafka's name for a user without a name."""
_OPERATIONS: Final[dict[str, Operation]] = {"publish": "WRITE", "subscribe": "READ", "peek": "READ"}
_MANAGE: Final = frozenset({"manage"})
_TEMPORARY: Final = frozenset({"temporary"})


class Authorizer:
    """The grants of one realm as its metadata has them now; and the log's own lists as they were a moment ago."""

    def __init__(self, context: RealmContext) -> None:
        self.on_changed: list[Callable[[], None]] = []
        """Told, by the thread that polls the realm, when something may be allowed no more, or anew."""
        self._metadata = context.metadata
        self._context = context
        self._access_lists: AccessLists | None = None
        self._timer = context.timers.timer("access", self._look)
        self._reports = context.timers.timer("changes of access", self.changed)
        context.metadata.on_changed.append(self._on_metadata)

    def allows(self, subject: Subject, operations: frozenset[str], node: Node | None) -> bool:
        """All of the operations on the node as it is now, or on the realm itself (no node)."""
        now = self._metadata.stores.get(node.store) if node is not None else None
        acl = (now.properties.acl if now is not None else ()) + self._metadata.acl
        if acl and not all(deciding_grant(acl, subject, operation) is not None for operation in operations):
            return False
        return (
            node is None
            or self._access_lists is None
            or log_allows(self._access_lists, subject, operations, node.topic)
        )

    @property
    def has_grants(self) -> bool:
        """The realm has grants of its own. Without, a node that has none is open to all, and so is making nodes."""
        return bool(self._metadata.acl)

    def may_create(self, subject: Subject) -> bool:
        """Nodes, which belong to the realm."""
        return self.allows(subject, _MANAGE, None)

    def may_create_temporary(self, subject: Subject) -> bool:
        """Nodes that end with the peer that creates them."""
        return self.allows(subject, _TEMPORARY, None)

    def follow_access_lists(self) -> None:
        """From now on the log's own lists count. Blocks; raises LogError. A log without lists has nothing to say."""
        self._access_lists = self._context.log.control.access_lists(self._context.limits.control_deadline_s)
        if self._access_lists is not None:
            self._timer.soon()
        self.changed()

    def _look(self) -> None:
        """At the log's lists."""
        context = self._context
        context.worker.submit(
            lambda: context.log.control.access_lists(context.limits.control_deadline_s), self._followed
        )

    def _followed(self, access_lists: AccessLists | LogError | None) -> None:
        self._timer.after(self._context.limits.rights_interval_s)
        if isinstance(access_lists, LogError):
            self._context.troubles.begin("access-lists-unread", f"those read before hold: {access_lists}")
            return
        self._context.troubles.end("access-lists-unread")
        if access_lists is not None and access_lists != self._access_lists:
            self._access_lists = access_lists
            self.changed()

    def _on_metadata(self, _: Node | None) -> None:
        self._reports.soon()  # once, however many changes came together

    def changed(self) -> None:
        """Call the listeners. Also called when a user's groups have changed, not a list."""
        for listener in self.on_changed:
            listener()


def log_allows(access_lists: AccessLists, subject: Subject, operations: Collection[str], topic: str) -> bool:
    user = LOG_ANONYMOUS if subject == ANONYMOUS else subject.user
    return all(access_lists.allow(user, _OPERATIONS[right], topic) for right in operations if right in _OPERATIONS)
