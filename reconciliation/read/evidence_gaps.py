"""What is missing of the evidence: records that cannot be read, numbers that are not there, topics without records."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from reconciliation.model.ranges import Extent
from reconciliation.model.runs import Numbering, numbering_findings, q1, tail_findings
from reconciliation.read.catalog import Catalog


@dataclass(slots=True)
class Gaps:
    """`findings`: Q1. `torn`: runs of which outcome records are missing."""

    findings: list[dict[str, Any]] = field(default_factory=list)
    torn: set[str] = field(default_factory=set)


def gaps_of(numberings: Iterable[Numbering], catalog: Catalog, extent: Extent, prefix: str, since: int | None) -> Gaps:
    """All but holes among the numbers of a run, which need another look at the records: those runs are torn, too."""
    known = list(numberings)
    recorded, noted = ([log for log in known if log.source == source] for source in ("outcomes", "journal"))
    gaps = Gaps(numbering_findings(known, catalog.digests))
    tails = tail_findings(known, since)
    gaps.findings += tails
    gaps.findings += [q1(None, 1, None, text) for text in catalog.unreadable]
    gaps.torn |= {tail["run"] for tail in tails}
    gaps.torn |= {log.run for log in recorded if log.run is not None and log.has_holes(since)}
    last = max(recorded, key=lambda log: log.offset_last, default=None)
    outcomes, journal = extent.range_of(f"{prefix}.outcomes"), extent.range_of(f"{prefix}.journal")
    if outcomes is not None and last is not None and outcomes.end - last.offset_last > _TAIL:
        text = f"{outcomes.topic} ends at offset {outcomes.end}, its last record is at {last.offset_last}: cut off"
        gaps.findings.append(q1(last.run, 1, None, text))
        gaps.torn |= {last.run} if last.run is not None else set()
    if journal is not None and recorded and not noted and not journal.first:
        gaps.findings.append(q1(None, 1, None, f"{journal.topic} holds no record, though gateways have run"))
    return gaps


_TAIL = 2
"""An end lies one past the last record, and the embedded realm skips one offset behind each batch."""


def no_outcomes(prefix: str) -> dict[str, Any]:
    """For a realm with deliveries, or whose outcome records were there: its owner always keeps the last one."""
    return q1(None, 1, None, f"{prefix}.outcomes holds no record: what peers were told is not known")
