"""What peers were told, counted for whoever watches: deliveries by node and outcome, errors by condition and code.

Counted once a group of an outcome record, never once a message. A peer can invent names of nodes, and a log words of
its own: what exceeds the bounds is counted under `OTHER`. May import: `gateway.limits`, the standard library.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from gateway.limits import METRIC_ERRORS, METRIC_NODES

if TYPE_CHECKING:
    from gateway.outcomes import Verdict

OTHER = "other"
_DIRECTIONS = {"publish": "in", "subscribe": "out"}
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,59}")


class Tally:
    """Since this run began."""

    def __init__(self) -> None:
        self.deliveries: Counter[tuple[str, str, str]] = Counter()  # direction, node, outcome
        self.errors: Counter[tuple[str, str]] = Counter()  # condition, native code
        self._nodes: set[str] = set()

    def add(self, verdict: Verdict, count: int) -> None:
        """So many deliveries have this outcome."""
        link = verdict.link
        direction = _DIRECTIONS.get(link.direction, link.direction)
        self.deliveries[direction, self._node(link.node or ""), verdict.outcome] += count
        if verdict.condition:
            self.error(verdict.condition, verdict.native or "", verdict.answer or "", count)

    def error(self, condition: str, native: str, answer: str, count: int = 1) -> None:
        """A peer was told so. `native` is the code if it is one word; what is said in words has the answer's name."""
        code = native if _WORD.fullmatch(native) else answer
        key = (condition, code)
        if key not in self.errors and len(self.errors) >= METRIC_ERRORS:
            key = (OTHER, OTHER)
        self.errors[key] += count

    def _node(self, name: str) -> str:
        if name in self._nodes:
            return name
        if len(self._nodes) >= METRIC_NODES:
            return OTHER
        self._nodes.add(name)
        return name
