"""All that a report is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reconciliation.history.compared import Comparison
from reconciliation.history.record import Record
from reconciliation.history.standing import Known
from reconciliation.jobs.reconcile import Judgement
from reconciliation.model.settings import Realm
from reconciliation.model.window import Window
from reconciliation.read.landing import Landed
from reconciliation.report.balance import Balance
from reconciliation.report.findings import Findings
from reconciliation.report.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Result:
    """One reconciliation. `record`: what is kept of it; `since`: against the one before; `earlier`: the records that it
    can be compared with, the oldest first; `damaged`: what is said of records that cannot be read. `known`: what is
    acknowledged, in the file `acknowledged_in`."""

    realm: Realm
    window: Window
    landed: Landed
    judgement: Judgement
    findings: Findings
    sheet: Balance
    verdict: Verdict
    record: Record
    since: Comparison
    earlier: Sequence[Record] = ()
    damaged: Sequence[str] = ()
    known: Sequence[Known] = ()
    acknowledged_in: str = ""
