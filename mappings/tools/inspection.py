"""All that can be said of a directory of tables: its rules, what they are compiled to, what its scenarios found, and
every problem of all of it at once.

Tables with problems are left out of the scenarios; while there are any, nothing is compared with the expanded tables.
May import: the standard library, `mappings`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mappings.check import check_table
from mappings.classify_file import Complain, nothing_to_say, unusable_transformers
from mappings.errors import usable_errors_of
from mappings.expand import check_expanded
from mappings.load import load_directory
from mappings.rules import RuleBook
from mappings.scenario import Verdict, run_scenarios
from mappings.table_set import TableSet, compile_profile
from mappings.vocabulary import PROFILES
from mappings.yaml_lines import Problem


@dataclass(frozen=True, slots=True)
class Inspection:
    """`rules` and `sets` (by profile) hold the tables that are sound."""

    rules: RuleBook
    sets: Mapping[str, TableSet]
    problems: list[Problem]  # of the tables
    verdict: Verdict  # of the scenarios
    stale: list[Problem]  # of the expanded tables


def inspect(directory: Path, complain: Complain = nothing_to_say) -> Inspection:
    """Read, check, compile and test DIRECTORY. `complain`: of transformers."""
    tables, problems = load_directory(directory / "tables")
    problems += unusable_transformers(tables.classification, complain)
    sound = RuleBook(tables.classification)
    for name, table in tables.items():
        found = check_table(table)
        problems.extend(found)
        if not found:
            sound[name] = table
    errors, wrong = usable_errors_of(directory)
    problems += wrong
    sets = compile_all(sound)
    verdict = run_scenarios(directory / "scenarios", sound, sets)
    stale = [] if problems else check_expanded(directory / "expanded", sets, errors)
    return Inspection(sound, sets, problems, verdict, stale)


def compile_all(rules: RuleBook) -> dict[str, TableSet]:
    return {profile: compile_profile(rules, profile) for profile in PROFILES}
