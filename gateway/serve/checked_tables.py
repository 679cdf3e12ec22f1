"""The tables that a configuration names, with everything checked that `serve` needs of them."""

from __future__ import annotations

from gateway.config.settings import Settings
from mappings import MappingProblems, TableSet, load_tables
from mappings.compiler.classify_file import unusable_transformers
from mappings.compiler.errors import usable_errors_of
from mappings.language.yaml_lines import Problem
from transformers.events.installed import complaint_about


def checked_tables(settings: Settings, problems: list[Problem]) -> TableSet:
    """The tables. Raises MappingProblems, also about transformers and native errors (`open_log` uses these); and the
    `problems` that there are besides."""
    directory = settings.mappings.directory
    try:
        tables = load_tables(directory, settings.mappings.profile)
    except MappingProblems as error:
        raise MappingProblems([*problems, *error.problems]) from None
    problems = [*problems, *usable_errors_of(directory)[1]]
    problems += unusable_transformers(tables.classify, complaint_about)
    if problems:
        raise MappingProblems(problems)
    return tables
