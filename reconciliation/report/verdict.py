"""The verdict: what everything that was found comes to. Summary, page, manifest and exit code take it from here.

* *clean*: all that was looked at agrees, the books close, and nothing was left out.
* *incomplete*: nothing that was looked at is wrong, but something could not be looked at, or not judged for want of
  evidence (class Q1, or a number in the books). It is not clean: what was not seen may be anything.
* *not clean*: there are anomalies of other classes, or the books do not close, whatever else could not be seen.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from reconciliation.model.classes import CLASSES, INCOMPLETE, is_anomaly
from reconciliation.report.balance import Balance
from reconciliation.report.findings import ClassReport, Findings

Word = Literal["clean", "incomplete", "not clean"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """`complete`: everything was seen. `sentence` is what the word comes from."""

    word: Word
    complete: bool
    sentence: str

    @property
    def clean(self) -> bool:
        return self.word == "clean"

    @property
    def words(self) -> str:
        return f"{self.word.upper()}. {self.sentence}"


def verdict_of(findings: Findings, sheet: Balance) -> Verdict:
    bad = [one for one in findings.classes if is_anomaly(one.code)]
    missing = [one for one in bad if one.code == INCOMPLETE]
    if not bad and not sheet.difference and not sheet.unseen:
        agrees = "Everything that was told agrees with what the log holds, and the balance closes."
        return Verdict("clean", True, agrees)
    sentences = [_named(bad)] if bad else []
    if sheet.difference:
        sentences.append(f"The balance does not close: {sheet.difference:,} events are unaccounted for.")
    if missing:
        sentences.append(f"Not everything could be seen: {_first(missing[0])}")
    elif sheet.unseen:
        sentences.append(f"Not everything could be seen: {sheet.unseen:,} could not be compared with anything.")
    wrong = sheet.difference or len(bad) > len(missing)
    return Verdict("not clean" if wrong else "incomplete", not missing and not sheet.unseen, " ".join(sentences))


def _named(bad: Iterable[ClassReport]) -> str:
    return ", ".join(f"{one.count:,} \u00d7 {CLASSES[one.code].name} ({one.code})" for one in bad) + "."


def _first(one: ClassReport) -> str:
    """What could not be read, by its first example."""
    details = list(dict.fromkeys(_detail(row) for row in one.examples))
    more = f", and more ({INCOMPLETE})" if len(details) > 1 else ""
    return f"{details[0]}{more}."


def _detail(row: dict[str, object]) -> str:
    run = f"run {row['run']}: " if row["run"] else ""
    return f"{run}{row['detail']}"
