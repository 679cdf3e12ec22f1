"""`realmgate doctor`: looks at the configuration, the realm and this machine, and changes nothing.

Exit codes: 0 nothing is wrong, 1 a line says `warn` or `FAIL`, 2 the configuration cannot be read or the realm cannot
be reached. What was not looked at is said, and changes no exit code.
"""

from __future__ import annotations

import argparse
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import TextIO

from gateway.cli.doctor import machine, realm
from gateway.cli.doctor.finding import Finding, fail, not_looked_at, ok
from gateway.cli.output import write_json
from gateway.config.listen_faults import address_problems
from gateway.config.settings import EmbeddedRealm, Settings, SettingsProblems, load_settings
from gateway.serve.checked_tables import checked_tables
from gateway.serve.open_log import open_log
from mappings import MappingProblems
from mappings.language.yaml_lines import Problem
from native_backend.clock import SystemClock
from native_backend.log.port import Inspection, LogError
from native_backend.nodes.metadata import realm_topics
from native_backend.nodes.metadata_writer import realm_metadata

_OF_THE_REALM = ("lease", "nodes", "broker", "topics", "groups", "evidence", "clocks", "disk", "open")
_FILE = "realm.sqlite"
Checks = tuple[tuple[str, Callable[[], Iterable[Finding]]], ...]


def run(arguments: argparse.Namespace, out: TextIO) -> int:
    """One command; its exit code."""
    code, findings = examine(arguments.config, arguments.reports)
    if arguments.json:
        write_json([asdict(each) for each in findings], out)
    else:
        out.writelines(f"{each}\n" for each in findings)
    return code


def examine(config: Path, reports: Path | None) -> tuple[int, list[Finding]]:
    """The exit code, and all findings. Blocks."""
    try:
        settings = load_settings(config)
    except SettingsProblems as error:
        wrong = [*_mistakes("configuration", error.problems)]
        return 2, [*wrong, not_looked_at("all else", "the configuration cannot be read")]
    now_s = SystemClock().epoch_us() / 1e6
    findings, reached = [*_configuration(config, settings), *_tables(settings)], False
    try:
        findings += _realm(settings, now_s)
        reached = True
    except MappingProblems:  # what the log's errors mean: `_tables` has said it
        findings.append(fail("realm", "it cannot be opened with these mappings", "mend the mappings first"))
    except (LogError, sqlite3.Error, OSError) as error:
        remedy = "start it, or correct realm in the configuration"
        findings.append(fail("realm", f"{settings.realm.place}: {error}", remedy))
    if not reached:
        findings += [not_looked_at(check, "the realm was not opened") for check in _OF_THE_REALM]
    findings += _machine(settings, reports, now_s)
    wrong = [each for each in findings if each.status in ("warn", "FAIL")]
    return (int(bool(wrong)) if reached else 2), findings


def _mistakes(check: str, problems: Iterable[Problem]) -> Iterator[Finding]:
    for problem in problems:
        yield fail(check, f"{problem.file}:{problem.line}: {problem.message}", problem.remedy)


def _configuration(config: Path, settings: Settings) -> Iterator[Finding]:
    wrong = [*_mistakes("configuration", address_problems(settings))]
    yield from wrong or [ok("configuration", f"{config} can be read")]


def _tables(settings: Settings) -> Iterator[Finding]:
    """As `serve` reads them."""
    try:
        tables = checked_tables(settings, [])
    except MappingProblems as error:
        yield from _mistakes("mappings", error.problems)
    else:
        words = f"{settings.mappings.directory or 'the shipped tables'}, profile {settings.mappings.profile}"
        yield ok("mappings", f"{words}: {tables.origin.digest} can be used")


def _realm(settings: Settings, now_s: float) -> list[Finding]:
    at = settings.realm
    if isinstance(at, EmbeddedRealm) and not (at.path / _FILE).exists():
        raise OSError(f"there is no {_FILE}: realmgate serve makes it")
    with closing(open_log(settings)) as log:
        metadata = realm_metadata(log, at.prefix)
        findings = [ok("realm", f"{at.place} answers")]
        of_nodes, usable = realm.nodes(log, metadata)
        wanted = [*realm_topics(at.prefix), *(node.topic for node in usable)]
        there = log.control.find_topics(wanted)
        inspected: Inspection | LogError | None = None
        try:
            inspected = log.control.inspect(list(there))
        except LogError as error:
            inspected = error
        checks: Checks = (
            ("lease", lambda: realm.owner(log, at.prefix)),
            ("nodes", lambda: of_nodes),
            ("broker", lambda: realm.broker(inspected)),
            ("topics", lambda: realm.topics(inspected, at.prefix, usable, there.keys())),
            ("groups", lambda: realm.groups(log, at.prefix, metadata, usable)),
            ("evidence", lambda: realm.evidence(log, at.prefix)),
            ("clocks", lambda: realm.clock(log, at.prefix, now_s)),
            ("disk", lambda: machine.disk(settings, inspected)),
            ("open", lambda: machine.exposure(settings, bool(metadata.acl))),
        )
        return [*findings, *_looked(checks)]


def _looked(checks: Checks) -> Iterator[Finding]:
    """What a check cannot read it has not looked at."""
    for check, look in checks:
        try:
            yield from look()
        except (LogError, sqlite3.Error, OSError, ValueError, KeyError) as error:
            yield not_looked_at(check, f"{type(error).__name__}: {error}")


def _machine(settings: Settings, reports: Path | None, now_s: float) -> list[Finding]:
    checks: Checks = (
        ("versions", machine.packages),
        ("gateway", lambda: machine.running(settings)),
        ("certificates", lambda: machine.certificates(settings, now_s)),
        ("users", lambda: machine.users(settings)),
        ("file limit", lambda: machine.files(settings)),
        ("spark", machine.spark),
        ("verdict", lambda: machine.verdict(reports, now_s)),
    )
    return [*_looked(checks)]
