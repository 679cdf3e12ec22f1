"""Counters of what peers were sent: deliveries by node and outcome, and every outcome that differs from what the peer
asked for, by condition, class, rule, native code and node.

Counted once a group of an outcome record, never once a message. A peer can invent names of nodes, and a log has codes
of its own: what exceeds the bounds is counted under `OTHER`, with its condition, class and rule. The tables bound
those. A name that is no node's is not counted by name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final, NamedTuple

from gateway.config.limits import METRIC_ERRORS, METRIC_NODES, METRIC_RULES
from gateway.config.node_names import GENERATED
from gateway.evidence.outcome_key import OutcomeKey, class_of
from mappings import Decision
from mappings.compiler.errors import is_code
from mappings.language.words import CLASS

OTHER: Final = "other"
FATAL: Final = "fatal"
NO_CLASS: Final = "none"
CLASSES: Final = (*(str(value) for value in CLASS.values if value is not None), NO_CLASS)
COUNTED: Final = ("publish", "published", "settle", "settled")
"""Tables of which every decision is about deliveries."""
TEMPORARY: Final = "temporary"
"""All nodes that peers have made for themselves: each has a name of its own, and few live long."""
_DIRECTIONS = {"publish": "in", "subscribe": "out"}
_AS_ASKED = (None, "done", "stored", "rolled-back")  # of a roll-back the answer to the discharge tells


class Error(NamedTuple):
    """An outcome that the peer did not ask for. Empty: it has no such field."""

    condition: str
    code: str
    klass: str
    rule: str
    node: str


class OutcomeCounters:
    """Since this run began."""

    def __init__(self) -> None:
        self.deliveries: Counter[tuple[str, str, str]] = Counter()  # direction, node, outcome
        self.errors: Counter[Error] = Counter()
        self.rules: Counter[tuple[str, str]] = Counter()  # table and rule: the deliveries that they decided about
        self.denied: Callable[[OutcomeKey, int], None] = lambda _outcome_key, _count: None
        self._nodes: set[str] = set()

    def add(self, key: OutcomeKey, count: int) -> bool:
        """So many deliveries have this outcome. True: it differs from what their peer asked for."""
        link = key.link
        link.counts[key.outcome] += count
        link.totals[link.direction, key.outcome] += count
        node = self._node(link.node or "") if link.store else ""
        direction = _DIRECTIONS.get(link.direction, link.direction)
        self.deliveries[direction, node, key.outcome] += count
        self._decided(key.rule, count)
        if key.answer_rule is not None:
            self._decided(key.answer_rule, count)
        is_error = differs(key)
        if is_error:
            rule = key.deciding
            code = key.fault or _code(key.native or "", key.answer or "")
            self._count(Error(key.condition or "", code, key.klass or "", _rule(rule), node), count)
            if key.answer == "access-denied":
                self.denied(key, count)
        return is_error

    def error(self, rule: Decision, answer: str = "", native: str = "", node: str = "", count: int = 1) -> None:
        """A peer got the error of `rule`, for a link, a request or a fault. `node`: an existing one, or empty."""
        code, known = _code(native, answer), self._node(node) if node else ""
        self._count(Error(rule.then["condition"] or "", code, class_of(rule) or "", _rule(rule), known), count)

    def turned_away(self, what: str, fault: str) -> None:
        """A peer that has no connection yet, of which no table decides: a failed login, TLS that failed."""
        self._count(Error("", fault, FATAL, what, ""), 1)

    def of_node(self, name: str) -> dict[str, dict[str, int]] | None:
        """Its deliveries by direction and outcome; None: they are counted with those of other nodes."""
        if name.startswith(GENERATED) or (name not in self._nodes and len(self._nodes) >= METRIC_NODES):
            return None
        counts: dict[str, dict[str, int]] = {direction: {} for direction in _DIRECTIONS.values()}
        for (direction, node, outcome), count in self.deliveries.items():
            if node == name:
                counts[direction][outcome] = count
        return counts

    def hits(self, table: str, rule: str) -> int | None:
        """Deliveries that it decided about. None: its table decides about something else, or it is counted with other
        rules."""
        is_counted = table in COUNTED and (OTHER, OTHER) not in self.rules
        return self.rules.get((table, rule), 0 if is_counted else None)

    def _decided(self, rule: Decision, count: int) -> None:
        names = rule.table, rule.rule
        if names not in self.rules and len(self.rules) >= METRIC_RULES:  # after reloads
            names = OTHER, OTHER
        self.rules[names] += count

    def _count(self, error: Error, count: int) -> None:
        if error not in self.errors and len(self.errors) >= METRIC_ERRORS:
            error = error._replace(code=OTHER, node=OTHER)
        self.errors[error] += count

    def _node(self, name: str) -> str:
        if name in self._nodes:
            return name
        if name.startswith(GENERATED):
            return TEMPORARY
        if len(self._nodes) >= METRIC_NODES:
            return OTHER
        self._nodes.add(name)
        return name


def differs(key: OutcomeKey) -> bool:
    """Does the outcome differ from what the peer asked for? A publisher asks for `accepted`, a consumer for the state
    that it sends; without a state it asks for nothing. A failure differs even if the peer gets no frame, and so does a
    message that is larger than its consumer takes, for it is not given."""
    if key.fault or key.klass or key.answer not in _AS_ASKED:
        return True
    answered = key.outcome
    if key.link.direction == "publish":
        return key.answer is None and answered not in ("accepted", "none")
    return key.cause == "disposition" and answered not in ("none", key.stated.partition("-")[0])


def _code(native: str, answer: str) -> str:
    """The native code if it is one word; else the realm's answer."""
    return native if is_code(native) else answer


def _rule(rule: Decision) -> str:
    return f"{rule.table}.{rule.rule}"
