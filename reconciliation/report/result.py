"""All that a report is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reconciliation.history.acknowledged import Acknowledged
from reconciliation.history.compared import Comparison, compare
from reconciliation.history.kept import Kept
from reconciliation.history.record import Record
from reconciliation.history.standing import Known, applied
from reconciliation.jobs.reconcile import Judgement
from reconciliation.ledgers.compared import Compared
from reconciliation.model.settings import Realm
from reconciliation.model.window import Window
from reconciliation.read.landing import Landed
from reconciliation.report.balance import Balance, balance
from reconciliation.report.findings import Findings
from reconciliation.report.recorded import recorded
from reconciliation.report.trend import Step, steps
from reconciliation.report.verdict import Verdict, verdict_of

DAY_US = 86_400_000_000


@dataclass(frozen=True, slots=True)
class Result:
    """One reconciliation. `record`: what is kept of it; `since`: against the one before; `earlier`: those of the
    same realm and window, the oldest first; `damaged`: what is said of records that cannot be read. `known`: what is
    acknowledged, in the file `acknowledged_in`. `compared`: with the ledgers of clients; None: none were given."""

    realm: Realm
    window: Window
    landed: Landed
    judgement: Judgement
    findings: Findings
    sheet: Balance
    verdict: Verdict
    record: Record
    since: Comparison
    earlier: Sequence[Step] = ()
    damaged: Sequence[str] = ()
    known: Sequence[Known] = ()
    acknowledged_in: str = ""
    compared: Compared | None = None

    @property
    def is_for_history(self) -> bool:
        """Of one of a row: is there anything that its last record does not say, or is that a day old?"""
        before, changed = self.since.before, self.since.counts
        if before is None or before.verdict != self.record.verdict or self.record.at_us - before.at_us >= DAY_US:
            return True
        return self.since.is_news or any(changed[name] for name in ("new", "grown", "reopened", "gone"))


def result_of(
    realm: Realm, window: Window, landed: Landed, judgement: Judgement, findings: Findings, earlier: Kept,
    acknowledged: Acknowledged, versions: Mapping[str, str], now_us: int, took_s: float,
    compared: Compared | None = None,
) -> Result:  # fmt: skip
    """Marks in `findings` what is acknowledged. `now_us`: the time, in microseconds since 1970; `took_s` so far."""
    known = applied(findings.anomalous, acknowledged, now_us)
    sheet = balance(judgement, findings.totals)
    verdict = verdict_of(findings, sheet)
    record = recorded(realm, window, landed, judgement, findings, sheet, verdict, versions, now_us, took_s)
    since = compare(record, earlier.before(record))
    before = [step for step in steps(earlier) if step.record.is_of(record)]
    damaged = earlier.words_of_damaged()
    return Result(
        realm, window, landed, judgement, findings, sheet, verdict, record, since, before, damaged, known,
        acknowledged.file, compared,
    )  # fmt: skip
