"""The classes of anomalies: what each means in plain words, how bad it is, and what to do about it.

Severity: C critical, M major, m minor, i informational (not an anomaly; never changes the exit code).
Source: issue 3, reconciliation. May import: the standard library only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Severity = Literal["C", "M", "m", "i"]
SEVERITY_WORDS: dict[Severity, str] = {"C": "critical", "M": "major", "m": "minor", "i": "informational"}


@dataclass(frozen=True, slots=True)
class AnomalyClass:
    """One class. `meaning` finishes the sentence "This delivery ..."."""

    code: str
    name: str
    severity: Severity
    meaning: str
    action: str


_ALL = (
    AnomalyClass(
        "P1",
        "lost write",
        "C",
        "was answered as stored, but its event is not in the store",
        "Restore the topic from a backup; find out who deleted the record. Ask the publisher to send it again.",
    ),
    AnomalyClass(
        "P2",
        "duplicate write",
        "M",
        "is in the store more than once",
        "Check that the producer is idempotent (enable.idempotence) and that nobody copied records into the topic.",
    ),
    AnomalyClass(
        "P3",
        "phantom write",
        "M",
        "is in the store, but no gateway recorded receiving it",
        "Find the foreign writer: only the gateway may have WRITE on the realm's topics.",
    ),
    AnomalyClass(
        "P4",
        "refused but stored",
        "C",
        "was refused to the publisher, but its event is in the store",
        "The publisher may send it again: expect a duplicate. Look up the native code in the error matrix.",
    ),
    AnomalyClass(
        "P5",
        "indeterminate, resolved",
        "i",
        "had no known answer (a timeout, or the gateway was killed); the log now says what became of it",
        "Nothing. The peer was told nothing, or that the result is unknown.",
    ),
    AnomalyClass(
        "A1",
        "acknowledged, not committed",
        "C",
        "was settled to the consumer as acknowledged, but the journal does not hold it: it will come again",
        "Check the journal topic for deleted records; expect a redelivery of this event.",
    ),
    AnomalyClass(
        "A2",
        "committed, not acknowledged",
        "C",
        "is terminal in the journal, but no outcome record says that the consumer was told: it is lost to it",
        "Check the outcomes topic for deleted records, then whether the application has seen the event.",
    ),
    AnomalyClass(
        "A3",
        "outcome not by the rule",
        "C",
        "had another rule, operation or outcome than the mapping table under its digest prescribes",
        "Run `realmgate mappings explain` for the cell; compare the gateway's version with the stored table.",
    ),
    AnomalyClass(
        "A5",
        "skipped",
        "C",
        "lies below the durable's low-water mark without ever having been acknowledged: nobody will get it",
        "Look for a foreign commit on the consumer group; only the gateway may have READ on it.",
    ),
    AnomalyClass(
        "A12",
        "expected loss",
        "i",
        "was pre-settled (at most once) and went no further",
        "Nothing. Use unsettled deliveries where loss matters.",
    ),
    AnomalyClass(
        "Q1",
        "evidence incomplete",
        "M",
        "cannot be judged, because records of the evidence are missing, doubled or unreadable",
        "Check retention (it must be off) and deletions on the outcomes, journal and tables topics.",
    ),
    AnomalyClass(
        "S1",
        "lost by retention",
        "C",
        "was deleted from the store before the durable had acknowledged it",
        "Set retention.ms=-1 and retention.bytes=-1 on the realm's topics: the realm trims them itself.",
    ),
)

CLASSES: dict[str, AnomalyClass] = {one.code: one for one in _ALL}
ORDER: tuple[str, ...] = tuple(CLASSES)
_RANK: tuple[Severity, ...] = ("i", "m", "M", "C")


def is_anomaly(code: str) -> bool:
    """Does a finding of this class make the verdict anything but clean?"""
    return CLASSES[code].severity != "i"


def worst(codes: list[str]) -> Severity | None:
    """The highest severity among the classes named, None when there are none."""
    return max((CLASSES[code].severity for code in codes), key=_RANK.index, default=None)
