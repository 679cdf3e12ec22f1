"""Acknowledgements: what a file may say, what each covers, and that nothing else is covered."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from reconciliation.history.acknowledged import Acknowledged, parse
from reconciliation.history.acknowledging import with_entry
from reconciliation.history.cause import Cause
from reconciliation.history.standing import Known, applied, day_at
from reconciliation.model.settings import SettingsError
from reconciliation.report import acknowledged as words
from tests.reconciliation.history.runs import AT_US, causes, lost, row

FILE = "known.yaml"
TODAY = day_at(AT_US)
ENTRY = """acknowledged:
  P1-0123456789:
    until: 2026-12-31
    by: ann
    reason: lost with the disk of 3 May, INC-4711
    what: lost write (P1) in orders
    messages: 4
    of: ["17-19", "33"]
"""


def written(cause: Cause, content: bytes | None = None, until: date = TODAY, reason: str = "INC-4711") -> bytes:
    return with_entry(content, FILE, cause, until, "ann", reason)


def known(findings: list[Cause], content: bytes, day: date = TODAY) -> list[Known]:
    at_us = AT_US + (day - TODAY).days * 86_400_000_000
    return applied(findings, parse(content, FILE), at_us)


def test_an_entry_is_read() -> None:
    [entry] = parse(ENTRY.encode(), FILE).entries
    assert (entry.id, entry.until, entry.by, entry.members.parts()) == (
        "P1-0123456789", date(2026, 12, 31), "ann", ["17-19", "33"],
    )  # fmt: skip
    assert (entry.line, entry.last) == (2, 8)


def test_the_file_of_the_document_is_one() -> None:
    text = (Path(__file__).parents[3] / "docs" / "reconciliation.md").read_text()
    [snippet] = re.findall(r"```\n(acknowledged:\n.*?)```", text, re.DOTALL)
    [entry] = parse(snippet.encode(), FILE).entries
    assert (entry.members.count, entry.by) == (3, "ann")


@pytest.mark.parametrize("content", ["", "# none\n", "acknowledged:\n", "acknowledged: {}\n"])
def test_a_file_may_say_nothing(content: str) -> None:
    assert parse(content.encode(), FILE).entries == ()


@pytest.mark.parametrize(
    ("old", "new", "line", "wrong"),
    [
        ("    until: 2026-12-31\n", "", 2, "P1-0123456789 has no until; realmgate reconcile --acknowledge ID"),
        ("    by: ann\n    reason", "    reason", 2, "has no by; "),
        ("    reason: lost with the disk of 3 May, INC-4711\n", "", 2, "has no reason; "),
        ("2026-12-31", "31.12.2026", 3, "until is not a day (31.12.2026 is no day; write YYYY-MM-DD); write"),
        ("2026-12-31", "2026-02-30", 3, "until is not a day (day is out of range"),
        ("2026-12-31", "for ever", 3, "until is not a day"),
        ("by: ann", 'by: " "', 4, "by says nothing that can be shown (it is empty); write a line"),
        ("by: ann", "by: [ann]", 4, "by says nothing that can be shown (it is no single value)"),
        ("reason: lost", 'reason: "lost', 8, "this is not YAML: "),
        (
            "reason: lost with the disk of 3 May, INC-4711",
            "reason: |\n      two\n      lines",
            5,
            "reason says nothing that can be shown",
        ),
        ("what:", "why:", 6, "why is not known here; write until, by, reason, messages, of, what"),
        ("what: lost write (P1) in orders", "by: bob", 6, "by is there twice; remove one of the two"),
        ("messages: 4", "messages: 5", 8, "messages and of do not agree: 5 messages, and 17-19, 33 are 4; remove"),
        ("messages: 4", "messages: -4", 7, "messages is no number (-4 is not 1 or more); write how many"),
        ('["17-19", "33"]', "17-19", 8, "of is no list of messages; copy it"),
        ('["17-19", "33"]', "[]", 8, "of is no list of messages"),
        ("P1-0123456789", "P1 in orders", 2, "P1 in orders is no name of a finding; write it as reports do"),
        ("acknowledged:\n", "known:\n", 1, "the file has the keys known; write one key acknowledged:"),
        ("acknowledged:\n", "acknowledged:\n  - one\n", 3, "this is not YAML: "),
    ],
)
def test_what_is_wrong_is_named_with_its_line(old: str, new: str, line: int, wrong: str) -> None:
    assert old in ENTRY
    with pytest.raises(SettingsError) as error:
        parse(ENTRY.replace(old, new, 1).encode(), FILE)
    first = str(error.value).splitlines()[0]
    assert first.startswith(f"{FILE}:{line}: ") and wrong in first, str(error.value)
    assert "; " in first, "and what to do"


def test_all_that_is_wrong_is_named_at_once() -> None:
    twice = ENTRY + ENTRY.partition("\n")[2].replace("until: 2026-12-31", "until: soon")
    with pytest.raises(SettingsError) as error:
        parse((twice + ENTRY.partition("\n")[2]).encode(), FILE)
    lines = str(error.value).splitlines()
    assert [line.partition(": ")[0] for line in lines] == [f"{FILE}:10", f"{FILE}:16"]
    assert lines[1].endswith("P1-0123456789 is acknowledged in line 2 already; remove one of the two")


@pytest.mark.parametrize("content", [b"\xff\xfe", b"acknowledged: [1]\n", b"- acknowledged\n"])
def test_a_file_of_another_kind(content: bytes) -> None:
    with pytest.raises(SettingsError, match=f"^{FILE}:1: "):
        parse(content, FILE)


def test_what_is_written_covers_the_finding_to_the_end_of_its_day() -> None:
    [cause] = causes(lost(17, 18, 19, 33))
    content = written(cause)
    assert content.decode().count("\n") == 12 and "    until: " in content.decode()
    [entry] = known([cause], content)
    assert (entry.covered, cause.open, entry.expired, entry.has_grown) == (4, 0, False, False)
    [again] = causes(lost(17, 18, 19, 33))
    [entry] = known([again], content, TODAY + timedelta(days=1))
    assert (entry.covered, again.open, entry.expired) == (0, 4, True), "it counts again"
    assert words.named(entry).endswith(f"expired after {TODAY}: INC-4711. All of it counts again")


@pytest.mark.parametrize(
    ("eids", "left"), [((1, 2, 3), 0), ((1, 2), 0), ((1, 2, 3, 4, 5), 2), ((1, 2, 9), 1), ((7, 8, 9), 3)]
)
def test_a_finding_that_has_others_counts_with_those(eids: tuple[int, ...], left: int) -> None:
    """Three are acknowledged. Fewer, or the same, stay so; what came, also in place of one that went, does not."""
    content = written(causes(lost(1, 2, 3))[0])
    [cause] = causes(lost(*eids))
    [entry] = known([cause], content)
    assert (cause.open, entry.covered, entry.has_grown) == (left, len(eids) - left, bool(left))
    if left:
        assert f"It has grown: {left} of {len(eids)} are not acknowledged, and count" in words.named(entry)


def test_a_group_counts_from_its_first_message_on() -> None:
    fields: dict[str, Any] = {"run": "1a-0001", "seq": 9, "rule": "accepts", "detail": "outcome released"}
    content = written(causes([row("A3", count=3, **fields)])[0])
    for other, left in (({"count": 3}, 0), ({"count": 5}, 2), ({"count": 3, "seq": 12}, 3)):
        [cause] = causes([row("A3", **{**fields, **other})])
        known([cause], content)
        assert cause.open == left


def test_another_finding_is_not_covered_and_one_that_is_gone_is_named() -> None:
    content = written(causes(lost(1, 2))[0])
    [bills] = causes(lost(1, 2, node="bills", store=8))
    [entry] = known([bills], content)
    assert (entry.cause, bills.open) == (None, 2)
    assert words.named(entry).endswith("It is not found any more: remove the entry, line 4")


def test_an_entry_takes_the_place_of_its_own_and_all_else_stays() -> None:
    orders, bills = causes([*lost(1, 2), *lost(5, node="bills", store=8)])[::-1]
    content = written(bills, written(orders, b"# ours\nacknowledged: # so far\n"))
    content = content.replace(b"  by:", b"  # asked twice\n    by:", 1)
    grown = causes(lost(1, 2, 3))[0]
    changed = written(grown, content, reason='said "so"\u00b7')
    [first, second] = parse(changed, FILE).entries
    assert (first.members.parts(), first.reason) == (["1-3"], 'said "so"\u00b7')
    assert second == replace(parse(content, FILE).entries[1], line=second.line, last=second.last)
    assert changed.startswith(b"# ours\nacknowledged: # so far\n" if b"# so far" in changed else b"# ours\n")
    assert written(grown, changed, reason='said "so"\u00b7') == changed, "and again the same"


def test_what_a_damaged_file_says_is_not_written_over() -> None:
    with pytest.raises(SettingsError, match=f"{FILE}:1: "):
        written(causes(lost(1))[0], b"known: {}\n")
    braces = "acknowledged: {P1-0123456789: {until: 2026-12-31, by: ann, reason: so, messages: 1, of: ['3']}}\n"
    assert parse(braces.encode(), FILE).entries[0].by == "ann"
    with pytest.raises(SettingsError, match="write each in lines of its own"):
        written(causes(lost(1))[0], braces.encode())


def test_an_empty_file_gets_its_head() -> None:
    assert Acknowledged(FILE).entries == ()
    assert written(causes(lost(1))[0], b"\n").decode().startswith("# Findings of reconciliations")
