"""`realmgate mappings check | explain | expand`: what an operator does with tables without a gateway.

    check [DIR]                                 every table, scenario and expanded table; all problems at once
    explain [DIR] TABLE [AXIS=VALUE ...]        which rule decides, and why; open axes: what each value leads to
    expand [DIR] [--check]                      rewrite (or only compare) the expanded tables

DIR holds tables/, scenarios/ and expanded/; left out, it is the shipped one. Exit code: 0 all is well, 1 there are
problems, 2 the command itself is wrong. May import: the standard library, `mappings`.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TextIO

from mappings.expand import check_expanded, write_expanded
from mappings.explain import UnknownFact, explain, known
from mappings.rules import TableRules
from mappings.scenario import run_scenarios
from mappings.table_set import SHIPPED, TableSet, compile_profile, load_rules
from mappings.vocabulary import DEFAULT_PROFILE, PROFILES, TABLES
from mappings.yaml_lines import Problem


def main(argv: list[str], out: TextIO) -> int:
    """Run one command, writing to `out`. argparse leaves by `SystemExit` for --help and for a wrong command line."""
    arguments = _parser().parse_args(argv)
    if arguments.command == "explain":
        return _explain(arguments, out)
    directory = Path(arguments.directory) if arguments.directory else SHIPPED
    if arguments.command == "check":
        return _check(directory, out)
    return _expand(directory, only_compare=arguments.check, out=out)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="realmgate mappings", description="Check, explain and expand mapping tables.")
    commands = parser.add_subparsers(dest="command", required=True)
    directory_text = "holds tables/, scenarios/, expanded/; default: the shipped tables"
    check = commands.add_parser("check", help="check every table, scenario and expanded table")
    check.add_argument("directory", metavar="DIR", nargs="?", help=directory_text)
    why = commands.add_parser("explain", help="say which rule decides given facts, and why")
    why.add_argument("words", metavar="[DIR] TABLE AXIS=VALUE", nargs="+", help="facts; axes left out stay open")
    why.add_argument("--dir", dest="directory", metavar="DIR", help=directory_text)
    why.add_argument("--profile", choices=PROFILES, default=DEFAULT_PROFILE)
    expand = commands.add_parser("expand", help="write the expanded tables")
    expand.add_argument("directory", metavar="DIR", nargs="?", help=directory_text)
    expand.add_argument("--check", action="store_true", help="write nothing; say what is out of date")
    return parser


def _check(directory: Path, out: TextIO) -> int:
    rules, problems = load_rules(directory)
    if problems:
        return _tell(problems, out)
    sets = _sets(rules)
    verdict = run_scenarios(directory / "scenarios", rules, sets)
    problems = verdict.problems + check_expanded(directory / "expanded", sets)
    if problems:
        return _tell(problems, out)
    for name, table in rules.items():
        counts = ", ".join(f"{profile.name} {len(profile.rules)} rules" for profile in table.profiles.values())
        cells = sets[DEFAULT_PROFILE][name].cells
        possible = sum(cell is not None for cell in cells)
        scenarios = verdict.counts.get(name, 0)
        out.write(f"{name:<10} {counts}, {possible} of {len(cells)} combinations possible, {scenarios} scenarios\n")
    for profile, tables in sets.items():
        out.write(f"digest of {profile}: {tables.digest}\n")
    return 0


def _explain(arguments: argparse.Namespace, out: TextIO) -> int:
    words: list[str] = arguments.words
    directory = Path(arguments.directory) if arguments.directory else SHIPPED
    if words[0] not in TABLES and Path(words[0]).is_dir():
        directory, words = Path(words[0]), words[1:]
    rules, problems = load_rules(directory)
    if problems:
        return _tell(problems, out)
    try:
        name, facts = _facts(words)
        tables = compile_profile(rules, arguments.profile)
        lines = explain(rules[name], tables[name], arguments.profile, facts)
    except UnknownFact as error:
        out.write(f"{error}\n")
        return 2
    out.writelines(f"{line}\n" for line in lines)
    return 0


def _facts(words: list[str]) -> tuple[str, dict[str, str]]:
    name, *pairs = words or [""]
    known("table", name, TABLES)
    facts: dict[str, str] = {}
    for pair in pairs:
        axis, equals, value = pair.partition("=")
        if not equals:
            raise UnknownFact(f"{pair} is not AXIS=VALUE; write one of {', '.join(TABLES[name].axes)} and its value")
        if axis in facts:
            raise UnknownFact(f"{axis} is given twice; keep one")
        facts[axis] = value
    return name, facts


def _expand(directory: Path, *, only_compare: bool, out: TextIO) -> int:
    rules, problems = load_rules(directory)
    if problems:
        return _tell(problems, out)
    sets = _sets(rules)
    expanded = directory / "expanded"
    if only_compare:
        return _tell(check_expanded(expanded, sets), out)
    touched = write_expanded(expanded, sets)
    out.writelines(f"wrote {path}\n" if path.exists() else f"removed {path}\n" for path in touched)
    out.write(f"{len(touched)} of {len(PROFILES) * len(TABLES)} expanded tables changed\n")
    return 0


def _sets(rules: Mapping[str, TableRules]) -> dict[str, TableSet]:
    return {profile: compile_profile(rules, profile) for profile in PROFILES}


def _tell(problems: Iterable[Problem], out: TextIO) -> int:
    lines = [f"{problem}\n" for problem in problems]
    out.writelines(lines)
    if lines:
        out.write(f"{len(lines)} problem{'s' if len(lines) > 1 else ''}\n")
    return 1 if lines else 0
