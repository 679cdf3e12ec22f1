"""Where the stores of durables end: asked for by whoever watches, on the control thread, a few nodes at a time.

Nothing is asked while nobody watches. May import: the standard library, `native_backend` below it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from native_backend.log import LogError
from native_backend.nodes import Node
from native_backend.services import Services

_LOG = logging.getLogger(__name__)


class Lags:
    """`ends`: by store, one past its last event as of the last look."""

    def __init__(self, services: Services) -> None:
        self.ends: dict[int, int] = {}
        self._services = services
        self._work: list[Node] = []
        self._due_s = float("-inf")

    def ask(self, nodes: Iterable[Node]) -> None:
        """Look again, unless it is being done or was done a moment ago."""
        limits, now_s = self._services.limits, self._services.clock.monotonic_s()
        if self._work or now_s < self._due_s:
            return
        self._work = [*{node.store: node for node in nodes}.values()][: limits.lag_nodes]
        self._due_s = now_s + limits.lag_interval_s if self._work else now_s
        self.ends = {node.store: self.ends[node.store] for node in self._work if node.store in self.ends}
        self._go_on()

    def _go_on(self) -> None:
        if not self._work:
            return
        batch = self._services.limits.projection_batch
        part, self._work = self._work[:batch], self._work[batch:]
        self._services.control.submit(lambda: self._look(part), self._looked)

    def _look(self, nodes: list[Node]) -> dict[int, int]:
        log, deadline_s = self._services.log, self._services.limits.control_deadline_s
        return {node.store: log.bounds(node.topic, node.partition, deadline_s)[1] for node in nodes}

    def _looked(self, ends: dict[int, int] | LogError) -> None:
        if isinstance(ends, LogError):
            _LOG.info("cannot see where stores end: %s", ends)
            self._work = []
            return
        self.ends.update(ends)
        self._go_on()
