"""The rules that decided about a delivery, with their reasons where the tables of that time are those at hand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gateway.cli.trace.outcomes import Outcome
from mappings.compiler.table_set import compile_profile, load_rules


class Reasons:
    """Of the tables in a directory (None: the shipped ones). They are read with the first reason."""

    def __init__(self, directory: Path | None) -> None:
        self._directory = directory
        self._known: dict[tuple[str, str], dict[tuple[str, str], tuple[str, str]]] = {}

    def rules(self, outcome: Outcome, sides: tuple[str, ...] = ("", "answer_")) -> Iterator[dict[str, Any]]:
        """Table, rule, reason and place; the last two None where the tables have changed since."""
        for side in sides:
            table, rule = outcome.group[f"{side}table"], outcome.group[f"{side}rule"]
            if table is not None:
                because, place = self._of(outcome).get((table, rule), (None, None))
                yield {"table": table, "rule": rule, "because": because, "place": place}

    def _of(self, outcome: Outcome) -> dict[tuple[str, str], tuple[str, str]]:
        key = outcome.digest, outcome.profile
        if key not in self._known:
            self._known[key] = self._read(*key)
        return self._known[key]

    def _read(self, digest: str, profile: str) -> dict[tuple[str, str], tuple[str, str]]:
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
