"""`realmgate doctor`: looks at the configuration, the realm and this machine, and changes nothing.

Exit codes: 0 nothing is wrong, 1 a line says `warn` or `FAIL`, 2 the configuration cannot be read or the realm cannot
be reached. A check that was left out is named, and changes no exit code. The checks run beside one another, the gateway
is asked first. The command does not wait longer than the time-out for any answer.
"""

from __future__ import annotations

import argparse
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import TextIO

from gateway.cli.answering_log import open_answering, remedy_of
from gateway.cli.doctor import machine, realm, written_history
from gateway.cli.doctor.finding import Finding, fail, not_looked_at, ok, warn
from gateway.cli.output import write_json
from gateway.cli.typed_numbers import ANSWER_S
from gateway.config.listen_faults import address_problems
from gateway.config.settings import EmbeddedRealm, Settings, SettingsProblems, load_settings
from gateway.serve.checked_tables import checked_tables
from mappings import MappingProblems
from mappings.language.yaml_lines import Problem
from native_backend.clock import SystemClock
from native_backend.log.open import EMBEDDED_FILE
from native_backend.log.port import Failure, Inspection, LogError
from native_backend.nodes.metadata import realm_topics
from native_backend.nodes.metadata_writer import realm_metadata

_OF_THE_REALM = ("lease", "nodes", "broker", "topics", "groups", "evidence", "history", "clocks", "disk", "open")
Checks = tuple[tuple[str, Callable[[], Iterable[Finding]]], ...]


def run(arguments: argparse.Namespace, out: TextIO) -> int:
    """One command; its exit code."""
    code, findings = examine(arguments.config, arguments.reports, arguments.timeout)
    if arguments.json:
        write_json([asdict(finding) for finding in findings], out)
    else:
        out.writelines(f"{finding}\n" for finding in findings)
    return code


def examine(config: Path, reports: Path | None, timeout_s: float = ANSWER_S) -> tuple[int, list[Finding]]:
    """The exit code, and all findings. Blocks for so long, and a moment."""
    try:
        settings = load_settings(config)
    except SettingsProblems as error:
        wrong = [*_mistakes("configuration", error.problems)]
        return 2, [*wrong, not_looked_at("all else", "the configuration cannot be read")]
    now_s, until_s = SystemClock().epoch_us() / 1e6, time.monotonic() + timeout_s
    looks = [_Asked(check, look) for check, look in _machine(settings, reports, now_s)]
    looking = _Realm(settings, now_s, timeout_s)
    in_realm = _Asked("realm", looking.look)
    findings = [*_configuration(config, settings), *_tables(settings)]
    findings += looks[0].findings(until_s, timeout_s)  # /health: the gateway knows best
    in_realm.join(max(0.0, until_s - time.monotonic()))
    findings += looking.findings()
    for probe in looks[1:]:
        findings += probe.findings(until_s, timeout_s)
    findings = [*_silent(findings, settings)]
    wrong = [finding for finding in findings if finding.status in ("warn", "FAIL")]
    return (int(bool(wrong)) if looking.reached else 2), findings


def _silent(findings: Iterable[Finding], settings: Settings) -> Iterator[Finding]:
    """A gateway that does not answer is wrong where one lives: the lease is `ok`, and not free."""
    owned = any(finding.check == "lease" and finding.words.endswith(realm.OWNED) for finding in findings)
    owned = owned and settings.admin is not None and settings.admin.port > 0
    for finding in findings:
        if owned and (finding.check, finding.status) == ("gateway", "not looked at"):
            remedy = "start the gateway of this configuration, or correct admin.listen"
            yield warn("gateway", f"{finding.words}, and a gateway owns the realm", remedy)
        else:
            yield finding


class _Asked(threading.Thread):
    """One check beside the others. What it waits for may never come, so the process does not wait for it."""

    def __init__(self, check: str, look: Callable[[], Iterable[Finding]]) -> None:
        super().__init__(daemon=True)
        self._check, self._look = check, look
        self._found: list[Finding] | None = None
        self.start()

    def run(self) -> None:
        self._found = [*_looked(((self._check, self._look),))]

    def findings(self, until_s: float, timeout_s: float) -> list[Finding]:
        """Those that there are at that time."""
        self.join(max(0.0, until_s - time.monotonic()))
        return self._found if self._found is not None else [_too_late(self._check, timeout_s)]


def _too_late(check: str, timeout_s: float) -> Finding:
    return not_looked_at(check, f"no answer within {timeout_s:g} s; --timeout S waits longer")


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


class _Realm:
    """What is looked at in the realm, one after another; all of it over one log."""

    def __init__(self, settings: Settings, now_s: float, timeout_s: float) -> None:
        self.reached = False
        self._settings, self._now_s, self._timeout_s = settings, now_s, timeout_s
        self._interval_s = settings.limits.history_interval_s
        self._found: list[Finding] = []
        self._failed: list[Finding] = []

    def look(self) -> Iterable[Finding]:
        settings = self._settings
        try:
            self._look()
        except MappingProblems:  # what the log's errors mean: `_tables` has said it
            self._failed.append(fail("realm", "it cannot be opened with these mappings", "mend the mappings first"))
        except LogError as error:
            self._failed.append(fail("realm", f"{settings.realm.place}: {error}", remedy_of(error, settings)))
        except (sqlite3.Error, OSError) as error:
            remedy = "start it, or correct realm in the configuration"
            self._failed.append(fail("realm", f"{settings.realm.place}: {error}", remedy))
        return ()

    def findings(self) -> list[Finding]:
        """What was found until now, what was not looked at."""
        known, why = [*self._found], "the realm was not opened"
        if self.reached:
            late = [check for check in _OF_THE_REALM if check not in {"broker", *(finding.check for finding in known)}]
            return known + self._failed + [_too_late(check, self._timeout_s) for check in late]
        error = LogError(Failure("unavailable", f"no answer within {self._timeout_s:g} s"))
        silent = fail("realm", f"{self._settings.realm.place}: {error}", remedy_of(error, self._settings))
        return (self._failed or [silent]) + [not_looked_at(check, why) for check in _OF_THE_REALM]

    def _look(self) -> None:
        at = self._settings.realm
        if isinstance(at, EmbeddedRealm) and not (at.path / EMBEDDED_FILE).exists():
            raise OSError(f"there is no {EMBEDDED_FILE}: realmgate serve makes it")
        with closing(open_answering(self._settings, 0.9 * self._timeout_s)) as log:
            metadata = realm_metadata(log, at.prefix)
            of_nodes, usable = realm.nodes(log, metadata)
            wanted = [*realm_topics(at.prefix), *(node.topic for node in usable)]
            there = log.control.find_topics(wanted)
            self._found.append(ok("realm", f"{at.place} answers"))
            self.reached = True
            inspected: Inspection | LogError | None = None
            try:
                inspected = log.control.inspect(list(there))
            except LogError as error:
                inspected = error
            checks: Checks = (
                ("lease", lambda: realm.owner(log, at.prefix)),
                ("nodes", lambda: of_nodes),
                ("broker", lambda: realm.broker(inspected)),
                ("topics", lambda: realm.topics(log, inspected, at.prefix, usable, there.keys())),
                ("groups", lambda: realm.groups(log, at.prefix, metadata, usable)),
                ("evidence", lambda: realm.evidence(log, at.prefix)),
                ("history", lambda: written_history.written(log, at.prefix, self._interval_s, self._now_s)),
                ("clocks", lambda: realm.clock(log, at.prefix, self._now_s)),
                ("disk", lambda: machine.disk(self._settings, inspected)),
                ("open", lambda: machine.exposure(self._settings, bool(metadata.acl))),
            )
            for finding in _looked(checks):
                self._found.append(finding)


def _looked(checks: Checks) -> Iterator[Finding]:
    """What a check cannot read it has not looked at."""
    for check, look in checks:
        try:
            yield from look()
        except (LogError, sqlite3.Error, OSError, ValueError, KeyError) as error:
            yield not_looked_at(check, f"{type(error).__name__}: {error}")


def _machine(settings: Settings, reports: Path | None, now_s: float) -> Checks:
    return (
        ("gateway", lambda: machine.running(settings)),
        ("versions", machine.packages),
        ("certificates", lambda: machine.certificates(settings, now_s)),
        ("users", lambda: machine.users(settings)),
        ("realm file", lambda: machine.realm_mode(settings)),
        ("file limit", lambda: machine.files(settings)),
        ("spark", lambda: machine.spark(settings)),
        ("verdict", lambda: machine.verdict(reports, now_s)),
    )
