"""`realmgate config check | show | schema | init`.

Exit codes: 0 done; 1 `check` found a problem, or `init` found a file; 2 `show` cannot read the configuration, or `init`
cannot write one. No command opens a realm or a port.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TextIO

from gateway.cli.configuration.effective import entries, write_entries
from gateway.cli.configuration.first_file import first_file
from gateway.cli.output import print_error, write_json
from gateway.config.file_modes import open_warnings
from gateway.config.schema import schema_text
from gateway.config.settings import SettingsProblems, load_settings
from mappings.language.yaml_lines import Problem

_COULD_NOT_RUN = 2


def run(arguments: argparse.Namespace, out: TextIO) -> int:
    """One command; its exit code."""
    if arguments.action == "check":
        return _check(arguments.config, out)
    if arguments.action == "schema":
        out.write(schema_text())
        return 0
    if arguments.action == "show":
        return _show(arguments.config, arguments.json, out)
    return _init(arguments.config, arguments.kafka, out)


def _check(path: Path, out: TextIO) -> int:
    from gateway.config.listen_faults import address_problems
    from gateway.serve.checked_tables import checked_tables  # takes its time
    from mappings import MappingProblems

    try:
        settings = load_settings(path)
        checked_tables(settings, address_problems(settings))
    except (SettingsProblems, MappingProblems) as error:
        _tell(error.problems)
        return 1
    for words in open_warnings(settings, has_grants=True):  # grants are the realm's; `serve` and `doctor` look at them
        print_error(f"warning: {words}")
    out.write(f"{path}: no problem\n")
    return 0


def _show(path: Path, as_json: bool, out: TextIO) -> int:
    try:
        shown = entries(path)
    except SettingsProblems as error:
        _tell(error.problems)
        return _COULD_NOT_RUN
    if as_json:
        write_json([entry.document() for entry in shown], out)
    else:
        write_entries(shown, out)
    return 0


def _init(path: Path, bootstrap: str | None, out: TextIO) -> int:
    problems: list[Problem] = []
    text = first_file(bootstrap, problems)
    if problems:
        sys.stderr.write("".join(f"realmgate: --kafka: {problem.sentence}\n" for problem in problems))
        return _COULD_NOT_RUN
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        return print_error(f"{path} exists, and is left as it is: name another file")
    except OSError as error:
        print_error(f"{path} cannot be written: {error.strerror}")
        return _COULD_NOT_RUN
    out.write(f"{path} is written; realmgate serve --config {path} serves with it\n")
    return 0


def _tell(problems: list[Problem]) -> None:
    sys.stderr.write("".join(f"{problem}\n" for problem in problems))
