"""The verdict: what everything that was found comes to. Summary, page, manifest and exit code take it from here.

* *clean*: all that was looked at agrees, the books close, and nothing was left out.
* *clean but for acknowledged*: what does not, or could not be looked at, is acknowledged, every message of it. Books
  that do not close cannot be acknowledged.
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

Word = Literal["clean", "clean but for acknowledged", "incomplete", "not clean"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """`complete`: everything was seen. `sentence` is what the word comes from. `acknowledged`: so many messages are in
    findings, and an operator has accepted them."""

    word: Word
    complete: bool
    sentence: str
    acknowledged: int = 0

    @property
    def clean(self) -> bool:
        return self.word == "clean"

    @property
    def passes(self) -> bool:
        """Is nothing wrong that is not acknowledged? It makes the exit code."""
        return self.word in ("clean", "clean but for acknowledged")

    @property
    def title(self) -> str:
        """The word for readers."""
        return self.word if self.clean or not self.passes else f"clean but for {self.acknowledged:,} acknowledged"

    @property
    def words(self) -> str:
        return f"{self.title.upper()}. {self.sentence}"


def verdict_of(findings: Findings, sheet: Balance) -> Verdict:
    anomalies = [report for report in findings.classes if is_anomaly(report.code)]
    known = {report.code: findings.acknowledged(report.code) for report in anomalies}
    left = {report.code: findings.messages(report.code) - known[report.code] for report in anomalies}
    bad = {code: count for code, count in left.items() if count}
    missing = next((report for report in anomalies if report.code == INCOMPLETE), None)
    accepted, complete = sum(known.values()), missing is None and not sheet.unseen
    # what could not be compared has its Q1
    is_accepted = complete or (missing is not None and INCOMPLETE not in bad)
    if not bad and not sheet.difference and is_accepted:
        if not accepted:
            agrees = "Everything that was told agrees with what the log holds, and the balance closes."
            return Verdict("clean", True, agrees)
        names = _named((report.code, known[report.code]) for report in anomalies)
        sentence = (
            f"Acknowledged: {names}. All else that was told agrees with what the log holds, and the balance closes."
        )
        unseen = f" Not everything could be seen: {_first(missing)}" if missing is not None else ""
        return Verdict("clean but for acknowledged", complete, sentence + unseen, accepted)
    sentences = [f"{_named(bad.items())}."] if bad else []
    if sheet.difference:
        sentences.append(f"The balance does not close: {sheet.difference:,} events are unaccounted for.")
    if missing is not None:
        sentences.append(f"Not everything could be seen: {_first(missing)}")
    elif sheet.unseen:
        sentences.append(f"Not everything could be seen: {sheet.unseen:,} could not be compared with anything.")
    if accepted:
        sentences.append(f"Besides, {accepted:,} {'is' if accepted == 1 else 'are'} acknowledged.")
    wrong = sheet.difference or any(code != INCOMPLETE for code in bad)
    return Verdict("not clean" if wrong else "incomplete", complete, " ".join(sentences), accepted)


def _named(bad: Iterable[tuple[str, int]]) -> str:
    return ", ".join(f"{count:,} \u00d7 {CLASSES[code].name} ({code})" for code, count in bad if count)


def _first(report: ClassReport) -> str:
    """What could not be read, by its first example."""
    details = list(dict.fromkeys(_detail(row) for row in report.examples))
    more = f", and more ({INCOMPLETE})" if len(details) > 1 else ""
    return f"{details[0]}{more}."


def _detail(row: dict[str, object]) -> str:
    run = f"run {row['run']}: " if row["run"] else ""
    return f"{run}{row['detail']}"
