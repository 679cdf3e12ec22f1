"""Nodes that attaches create: one call for all who want the same one while it is under way.

A reconnect brings the links of an application all at once, and each asks for its node.
"""

from __future__ import annotations

from collections.abc import Callable

from native_backend.dispatch.context import RealmContext, subscribe_answer
from native_backend.log.port import LogError
from native_backend.nodes.admin import create_node, warned
from native_backend.nodes.answers import NodeFound
from native_backend.nodes.metadata import Metadata
from native_backend.nodes.node import Node, NodeError
from native_backend.nodes.words import NodeKind


class NodeCreations:
    """Of one realm. `find` answers an owner with the node as the realm's metadata has it then."""

    def __init__(self, context: RealmContext, find: Callable[[str, object], None]) -> None:
        self._context, self._find = context, find
        self._owners: dict[tuple[str, NodeKind], list[object]] = {}
        self._known = Metadata()  # the worker's own: all of it anew for each node was 30 ms beside 1,000 others

    def begin(self, name: str, kind: NodeKind, owner: object) -> None:
        """Answered by `NodeFound`."""
        owners = self._owners.setdefault((name, kind), [])
        owners.append(owner)
        if len(owners) > 1:
            return
        context = self._context

        def job() -> Node | Exception:
            """A mistake of ours is returned, too: raised here, it would leave this creation under way."""
            try:
                node = create_node(context.log, context.prefix, name, kind, context.clock, known=self._known)
                self._known.durables.clear()  # none is looked for, and there may be many
                return warned(context.log, node)
            except LogError:
                raise
            except NodeError as refusal:
                return refusal
            except Exception as fault:
                self._known = Metadata()
                return fault

        context.worker.submit(job, lambda node: self._ended(name, kind, node))

    def _ended(self, name: str, kind: NodeKind, node: Node | Exception) -> None:
        for owner in self._owners.pop((name, kind)):
            if isinstance(node, Exception):
                self._context.answer(self._refusal(owner, node))
            else:
                self._find(name, owner)

    def _refusal(self, owner: object, fault: Exception) -> NodeFound:
        if isinstance(fault, NodeError):
            return NodeFound(owner, None, "unexpected", "node-not-made", str(fault))
        if isinstance(fault, LogError):
            return NodeFound(owner, None, subscribe_answer(fault.failure), fault.failure.code)
        try:
            raise fault
        except Exception:
            words = self._context.mistakes.note("a node could not be created")
        return NodeFound(owner, None, "unexpected", "node-not-made", words)
