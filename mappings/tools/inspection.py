"""All that is known about a directory of tables: its rules, what they are compiled to, what its scenarios found, and
every problem of all of it at once.

Tables with problems are left out of the scenarios; while there are any, nothing is compared with the expanded tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mappings.compiler.check import check_table
from mappings.compiler.classify_file import Complain, nothing_to_say, unusable_transformers
from mappings.compiler.errors import usable_errors_of
from mappings.compiler.load import load_directory
from mappings.compiler.table_set import TableSet, compile_profile
from mappings.language.rules import RuleBook
from mappings.language.vocabulary import PROFILES
from mappings.language.yaml_lines import Problem
from mappings.tools.expand import check_expanded
from mappings.tools.scenario import ScenarioResult, run_scenarios


@dataclass(frozen=True, slots=True)
class Inspection:
    """`rules` and `sets` (by profile) hold the tables that are sound."""

    rules: RuleBook
    sets: Mapping[str, TableSet]
    problems: list[Problem]  # of the tables
    result: ScenarioResult  # of the scenarios
    stale: list[Problem]  # of the expanded tables


def inspect(directory: Path, complain: Complain = nothing_to_say) -> Inspection:
    """Read, check, compile and test DIRECTORY. `complain`: of transformers."""
    tables, problems = load_directory(directory / "tables")
    problems += unusable_transformers(tables.classification, complain)
    sound = RuleBook(tables.classification)
    for name, table in tables.items():
        faults = check_table(table)
        problems.extend(faults)
        if not faults:
            sound[name] = table
    errors, wrong = usable_errors_of(directory)
    problems += wrong
    sets = compile_all(sound)
    result = run_scenarios(directory / "scenarios", sound, sets)
    stale = [] if problems else check_expanded(directory / "expanded", sets, errors)
    return Inspection(sound, sets, problems, result, stale)


def compile_all(rules: RuleBook) -> dict[str, TableSet]:
    return {profile: compile_profile(rules, profile) for profile in PROFILES}
