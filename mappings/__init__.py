"""Mapping tables: facts in, a decision out. The tables are YAML under `tables/`; this room loads, checks and compiles
them.

    from mappings import load_tables
    tables = load_tables(profile="extended")
    tables["published"].decide(answer="stored", sender_settle_mode="unsettled", presettled="no").then["outcome"]
"""

from mappings.compiler.compile import Decision, ImpossibleFacts, Origin, Slice, Table
from mappings.compiler.table_set import MappingProblems, NodeTables, TableSet, load_tables
from mappings.language.classification import DEFAULT_CLASS

__all__ = [
    "DEFAULT_CLASS",
    "Decision",
    "ImpossibleFacts",
    "MappingProblems",
    "NodeTables",
    "Origin",
    "Slice",
    "Table",
    "TableSet",
    "load_tables",
]
