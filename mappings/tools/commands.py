"""`realmgate mappings check | test | explain | expand | diff`: what an operator does with tables without a gateway.

    check [DIR] [--format text|json|github]      every table, transformer that is named, native error, scenario and
                                                 expanded table; all problems at once
    test [DIR] [--least PERCENT]                 the scenarios, and which rules none of them reaches
    explain [DIR] [TABLE] [AXIS=VALUE ...]       which rule decides, and why; open axes: what each value leads to;
                                                 node=NAME: of which class a node is, too; code=CODE [moment=MOMENT]:
                                                 what a native error means and which errors peers get
    expand [DIR] [--check]                       rewrite (or only compare) the expanded tables and the schemas
    diff OLD NEW [--dir DIR]                     in words; OLD and NEW are folders, git revisions or profiles

DIR holds tables/, scenarios/ and expanded/; left out, it is the shipped one. Exit code: 0 all is well (for `diff`: the
same behaviour), 1 it is not, 2 the command itself is wrong.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from mappings.compiler.classify_file import Complain, nothing_to_say
from mappings.compiler.errors import errors_of
from mappings.compiler.table_set import SHIPPED, compile_profile, load_rules
from mappings.language.rules import RuleBook
from mappings.language.vocabulary import DEFAULT_PROFILE, NODE_CLASS, PROFILES, TABLES
from mappings.language.yaml_lines import Problem
from mappings.tools import revisions
from mappings.tools.difference import compare, write_groups
from mappings.tools.error_table import TABLE as ERROR
from mappings.tools.expand import check_expanded, write_expanded
from mappings.tools.explain import explain, explain_node
from mappings.tools.explain_error import asks_of_an_error, explain_error, read_error_question
from mappings.tools.facts import Question, UnknownFact, read_question
from mappings.tools.inspection import compile_all, inspect
from mappings.tools.problem_text import FORMATS, write_problems
from mappings.tools.schema import check_schemas, write_schemas


def main(argv: list[str], out: TextIO, complain: Complain = nothing_to_say) -> int:
    """Run one command, writing to `out`. `complain`: of transformers, which this room does not know. argparse leaves by
    `SystemExit` for --help and for a wrong command line."""
    arguments = _parser().parse_args(argv)
    if arguments.command == "explain":
        return _explain(arguments, out)
    directory = Path(arguments.directory) if arguments.directory else SHIPPED
    if arguments.command == "check":
        return _check(directory, arguments.format, out, complain)
    if arguments.command == "test":
        return _test(directory, arguments.least, out)
    if arguments.command == "diff":
        return _diff(arguments.old, arguments.new, directory, out)
    return _expand(directory, only_compare=arguments.check, out=out)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="realmgate mappings", description="Check, test, explain, expand and compare mapping tables."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    directory_text = "holds tables/, scenarios/, expanded/; default: the shipped tables"
    check = commands.add_parser("check", help="check every table, scenario and expanded table")
    check.add_argument("directory", metavar="DIR", nargs="?", help=directory_text)
    check.add_argument("--format", choices=FORMATS, default="text", help="github: annotations of a pull request")
    test = commands.add_parser("test", help="run the scenarios and name the rules that none reaches")
    test.add_argument("directory", metavar="DIR", nargs="?", help=directory_text)
    test.add_argument("--least", metavar="PERCENT", type=int, default=100, help="of the rules reached; default: 100")
    why = commands.add_parser("explain", help="say which rule decides given facts, and why")
    words_text = "facts; axes left out stay open, and the table where they name it"
    why.add_argument("words", metavar="[DIR] [TABLE] AXIS=VALUE", nargs="+", help=words_text)
    why.add_argument("--dir", dest="directory", metavar="DIR", help=directory_text)
    why.add_argument("--profile", choices=PROFILES, default=DEFAULT_PROFILE)
    expand = commands.add_parser("expand", help="write the expanded tables and the schemas")
    expand.add_argument("directory", metavar="DIR", nargs="?", help=directory_text)
    expand.add_argument("--check", action="store_true", help="write nothing; say what is out of date")
    diff = commands.add_parser("diff", help="say in words what changes between two sets of tables")
    diff.add_argument("old", metavar="OLD", help="a folder with tables/, a git revision, or a profile")
    diff.add_argument("new", metavar="NEW", help="the same")
    diff.add_argument("--dir", dest="directory", metavar="DIR", help="whose revisions and profiles; " + directory_text)
    return parser


def _check(directory: Path, form: str, out: TextIO, complain: Complain) -> int:
    inspected = inspect(directory, complain)
    problems = [*inspected.problems, *inspected.result.problems, *inspected.result.missed, *inspected.stale]
    problems += _stale_schemas(directory)
    if problems or form != "text":
        return write_problems(problems, form, out)
    classes = inspected.rules.classification
    patterns = sum(len(rule.names) for rule in classes.rules)
    out.write(f"classify   {len(classes.node_classes)} classes, {len(classes.rules)} rules, {patterns} patterns\n")
    for name, table in inspected.rules.items():
        counts = ", ".join(f"{profile.name} {len(profile.rules)} rules" for profile in table.profiles.values())
        cells = inspected.sets[DEFAULT_PROFILE][name].cells
        possible = sum(cell is not None for cell in cells)
        scenarios = inspected.result.counts.get(name, 0)
        out.write(f"{name:<10} {counts}, {possible} of {len(cells)} combinations possible, {scenarios} scenarios\n")
    for profile, tables in inspected.sets.items():
        out.write(f"digest of {profile}: {tables.digest}\n")
    return 0


def _test(directory: Path, least: int, out: TextIO) -> int:
    inspected = inspect(directory)
    result = inspected.result
    failed = write_problems([*inspected.problems, *result.problems, *result.missed], "text", out)
    out.writelines(f"{name:<10} {count} scenarios\n" for name, count in result.counts.items())
    percent = 100 * result.reached / result.rules if result.rules else 0.0
    out.write(f"{result.reached} of {result.rules} rules reached ({percent:.1f} %), counted in each profile\n")
    if inspected.problems or result.problems:
        return failed
    return 0 if percent >= least else 1


def _explain(arguments: argparse.Namespace, out: TextIO) -> int:
    words: list[str] = arguments.words
    directory = Path(arguments.directory) if arguments.directory else SHIPPED
    if words[0] not in (*TABLES, ERROR) and Path(words[0]).is_dir():
        directory, words = Path(words[0]), words[1:]
    rules, problems = load_rules(directory)
    errors, wrong = errors_of(directory)
    if problems or wrong:
        return write_problems([*problems, *wrong], "text", out)
    try:
        if asks_of_an_error(words):
            error_question = read_error_question(words, errors)
            tables = compile_profile(rules, error_question.get("profile", arguments.profile))
            out.writelines(f"{line}\n" for line in explain_error(errors, rules, tables, error_question))
            return 0
        question = read_question(words, {name: table.words for name, table in rules.items()})
        lines = _answer(rules, question, question.profile or arguments.profile)
    except UnknownFact as error:
        out.write(f"{error}\n")
        return 2
    out.writelines(f"{line}\n" for line in lines)
    return 0


def _answer(rules: RuleBook, question: Question, profile: str) -> list[str]:
    """With a node, its class comes first, and is a fact for the table that has that axis."""
    lines = [] if question.node is None else explain_node(rules.classification, question.node)
    if question.table is None:
        return lines
    table = compile_profile(rules, profile)[question.table]
    if question.node is not None and NODE_CLASS in table.axes:
        node_class = rules.classification(question.node).node_class
        if question.facts.setdefault(NODE_CLASS, node_class) != node_class:
            raise UnknownFact(f"node {question.node} is of class {node_class}; leave {NODE_CLASS} out")
    return [*lines, *explain(rules[question.table], table, profile, question.facts)]


def _expand(directory: Path, *, only_compare: bool, out: TextIO) -> int:
    rules, problems = load_rules(directory)
    errors, wrong = errors_of(directory)
    if problems or wrong:
        return write_problems([*problems, *wrong], "text", out)
    sets = compile_all(rules)
    expanded = directory / "expanded"
    if only_compare:
        return write_problems(check_expanded(expanded, sets, errors) + _stale_schemas(directory), "text", out)
    touched = write_expanded(expanded, sets, errors)
    schemas = write_schemas(directory / "schemas")
    out.writelines(f"wrote {path}\n" if path.exists() else f"removed {path}\n" for path in [*touched, *schemas])
    out.write(f"{len(touched)} of {len(PROFILES) * (len(TABLES) + 1) + 1} expanded tables changed\n")
    return 0


def _stale_schemas(directory: Path) -> list[Problem]:
    """Tables of one's own need none."""
    return check_schemas(directory / "schemas") if (directory / "schemas").is_dir() else []


def _diff(old: str, new: str, directory: Path, out: TextIO) -> int:
    try:
        sides = [_side(name, old, new, directory) for name in (old, new)]
    except revisions.NoSuchSide as error:
        out.write(f"{error}\n")
        return 2
    problems = [problem for _, faults in sides for problem in faults]
    if problems:
        write_problems(problems, "text", out)
        return 2
    (before, _), (after, _) = sides
    groups = compare(before, after)
    out.writelines(f"{line}\n" for line in write_groups(groups, before, after))
    changed = [group for group in groups if group.behaviour]
    count = sum(len(group.combinations) * len(group.profiles) for group in changed if group.table != ERROR)
    codes = {fact for group in changed if group.table == ERROR for facts in group.combinations for fact in facts[:1]}
    changes = [f"{count} combinations decided otherwise"] if count else []
    changes += [f"{len(codes)} native errors told otherwise"] if codes else []
    out.write(f"{', '.join(changes) or 'the same behaviour'}\n")
    return 1 if changed else 0


def _side(name: str, old: str, new: str, directory: Path) -> tuple[revisions.Side, Sequence[Problem]]:
    if name in PROFILES:
        side, problems = revisions.of_directory(directory)
        title = f"{old} -> {new}" if old in PROFILES and new in PROFILES else name
        return revisions.of_profile(side, name, title), problems
    if (Path(name) / "tables").is_dir():
        return revisions.of_directory(Path(name))
    return revisions.of_revision(name, directory), []
