"""How large an event of a node may be: what a record of its topic may have, less what is put around the event.

A topic's setting may be changed at any time, so it is asked for again where it was read more than `KEPT_S` ago; those
who ask at one time share a look. Where it cannot be read now, what was read last counts, else what every broker takes
by default: a record that is too large after all is refused by the log, and told so. Octets; seconds.
"""

from __future__ import annotations

from typing import Final

from native_backend.dispatch.context import RealmContext
from native_backend.log.port import LogError
from native_backend.nodes.answers import NodeSized
from native_backend.nodes.node import Node

AROUND_BYTES: Final = 8_192
"""A batch's and a record's heads, the key, headers of transformers, and what a dead letter says of its cause."""
UNKNOWN_BYTES: Final = 1_000_000 - AROUND_BYTES
KEPT_S: Final = 5.0


class EventSizes:
    """All nodes of a realm."""

    def __init__(self, context: RealmContext) -> None:
        self._context = context
        self._read: dict[str, tuple[int, float]] = {}  # by topic: octets, and when
        self._waiting: list[tuple[Node, object]] = []
        self._looking = False

    def known(self, node: Node) -> int | None:
        """Octets, from memory, at once; None: `ask`."""
        size, at_s = self._read.get(node.topic, (0, float("-inf")))
        return size if self._context.clock.monotonic_s() - at_s < KEPT_S else None

    def ask(self, node: Node, owner: object) -> None:
        """Answered by `NodeSized`."""
        self._waiting.append((node, owner))
        if not self._looking:
            self._look()

    def forget(self, node: Node) -> None:
        self._read.pop(node.topic, None)

    def _look(self) -> None:
        self._looking = True
        requested, self._waiting = self._waiting, []
        log, deadline_s = self._context.log, self._context.limits.control_deadline_s
        topics = sorted({node.topic for node, _ in requested})

        def found(sizes: dict[str, int] | LogError) -> None:
            self._looking = False
            if isinstance(sizes, dict):
                read_s = self._context.clock.monotonic_s()
                self._read |= {topic: (max(1, sizes[topic] - AROUND_BYTES), read_s) for topic in topics}
            for node, owner in requested:
                bytes_max = self._read.get(node.topic, (UNKNOWN_BYTES, 0.0))[0]
                self._context.answer(NodeSized(owner, node, bytes_max))
            if self._waiting:
                self._look()

        self._context.worker.submit(lambda: log.control.record_bytes_max(topics, deadline_s), found)
