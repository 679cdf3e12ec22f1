"""The rules that decided about a delivery, with their reasons: of the tables at hand, where those decided, else as the
gateway stored them beside its tables (docs/records.md, *Expanded tables*).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gateway.cli.stored_tables import stored_because
from gateway.cli.trace.outcomes import Outcome
from mappings.compiler.table_set import compile_profile, load_rules
from native_backend.log.port import Log, if_there

_ByRule = dict[tuple[str, str], tuple[str, str | None]]
"""Reason and place, by table and rule."""


class Reasons:
    """Of the tables in a directory (None: the shipped ones). They are read with the first reason. Blocks; raises
    LogError."""

    def __init__(self, directory: Path | None, log: Log, topic: str) -> None:
        """`topic`: where the realm keeps expanded tables."""
        self._directory = directory
        self._log, self._topic = log, topic
        self._known: dict[tuple[str, str], _ByRule] = {}

    def rules(self, outcome: Outcome, sides: tuple[str, ...] = ("", "answer_")) -> Iterator[dict[str, Any]]:
        """Table, rule, reason and place; the place None where the tables have changed since, the reason, too, where an
        earlier release decided."""
        for side in sides:
            table, rule = outcome.group[f"{side}table"], outcome.group[f"{side}rule"]
            if table is not None:
                because, place = self._of(outcome).get((table, rule), (None, None))
                yield {"table": table, "rule": rule, "because": because, "place": place}

    def _of(self, outcome: Outcome) -> _ByRule:
        key = outcome.digest, outcome.profile
        if key not in self._known:
            self._known[key] = self._at_hand(*key) or self._stored(outcome.digest)
        return self._known[key]

    def _stored(self, digest: str) -> _ByRule:
        with if_there():
            stored = stored_because(self._log, self._topic, digest).items()
            return {(table, rule): (because, None) for table, rules in stored for rule, because in rules.items()}
        return {}

    def _at_hand(self, digest: str, profile: str) -> _ByRule:
        rules, problems = load_rules(self._directory)
        if problems or any(profile not in table.profiles for table in rules.values()):
            return {}
        if compile_profile(rules, profile).digest != digest:
            return {}
        return {
            (name, rule.id): (rule.because, rule.place)
            for name, table in rules.items()
            for rule in table.profiles[profile].rules
        }
