"""The gateway's runs, on the driver: which are closed, killed or live, and what is wrong with their numbering (Q1).

A run that has not closed is live when it is the latest and its process is not known to have ended, else killed. Neither
is judged above its last `low`. Where old evidence was trimmed, a run that began before is judged from its *base* on:
what was given a seq after the first outcome record of it that is kept was sent later, too. The realm trims what is
older than `limits.evidence_s`: what is younger and gone is missing (Q1).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

RECORDED = "recorded"
"""Operation of the notes in the journal that speak of outcome records, and of no event."""
RUN = "[0-9a-f]{1,12}-[0-9a-f]{4}"
"""The name of a run, as a regular expression. A record that names anything else was damaged."""
State = Literal["closed", "killed", "live"]
NEVER = 1 << 62
"""The base of a run of which nothing can be judged."""


@dataclass(frozen=True, slots=True)
class Numbering:
    """How the records of one run in one topic are numbered."""

    source: Literal["outcomes", "journal"]
    run: str | None
    records: int
    n_first: int | None
    n_last: int | None
    n_distinct: int
    at_first: int | None
    at_last: int | None
    low: int | None
    offset_first: int
    at_offset_first: int | None
    next: int | None  # the seq that was given next, as of the first record; earlier releases did not say
    closed: int | None
    digests: tuple[str, ...]
    recorded: int | None = None  # of the journal: so many outcome records were stored, as its notes say
    offset_last: int = -1
    at_read: int | None = None  # of the journal: of the last record below what could not be read
    noted_old: int | None = None  # the most that it notes where it is old enough to be trimmed
    noted_young: int | None = None  # the least that it notes where it is younger

    @classmethod
    def of(cls, row: Any) -> Numbering:
        values = row.asDict()
        return cls(**{**values, "digests": tuple(sorted(values["digests"]))})

    def is_cut(self, since: int | None) -> bool:
        """Whether its beginning may have been trimmed with all outcomes before `since`."""
        return self.n_first != 1 and self.is_older(since)

    def is_older(self, since: int | None) -> bool:
        """Whether it began before the first outcome record that is kept."""
        return since is not None and self.run is not None and began_ms(self.run) * 1000 <= since

    def has_holes(self, since: int | None) -> bool:
        if self.n_first is None or self.n_last is None:
            return False
        first = self.n_first if self.source == "journal" or self.is_cut(since) else 1
        return self.n_distinct < self.n_last - first + 1

    def base(self, since: int | None) -> int:
        """The first seq that can be judged."""
        return (self.next or NEVER) if self.is_cut(since) else 1


@dataclass(frozen=True, slots=True)
class Run:
    """One life of one gateway process, as its outcome records tell it."""

    name: str
    low: int
    state: State
    at_first: int
    at_last: int
    base: int = 1


def began_ms(run: str) -> int:
    """A run's name begins with its time, in hex."""
    return int(run.partition("-")[0], 16)


def told_since(numberings: Iterable[Numbering], first_kept: int) -> int | None:
    """When the first outcome record that is kept was written; None: none was trimmed, the topic begins at 0."""
    recorded = [log for log in numberings if log.source == "outcomes" and log.at_offset_first is not None]
    if not first_kept or not recorded:
        return None
    return min(recorded, key=lambda log: log.offset_first).at_offset_first


def young_from(now_us: int, evidence_s: float) -> int:
    """Since when, in microseconds since 1970, nothing can have been trimmed yet. Clocks may differ, and a record comes
    a moment after its time: within an hour (where evidence is kept for less, as long) it is left open."""
    return now_us - round((evidence_s - min(_OPEN_S, evidence_s)) * 1_000_000)


def trimmed_young(numberings: Iterable[Numbering], young: int, outcomes_first: int) -> list[dict[str, Any]]:
    """Outcome records that are gone from the beginning of the topic though the journal notes them as stored after
    `young`, of runs that began before; of runs that began later, journal records that are gone from their beginning."""
    known = list(numberings)
    firsts = {log.run: log.n_first or 1 for log in known if log.source == "outcomes"}
    why = "; the realm trims none that are younger than limits.evidence_s"
    findings = []
    for log in known:
        if log.source != "journal" or log.run is None:
            continue
        if not log.is_older(young) and log.n_first is not None and log.n_first > 1:
            findings.append(hole_finding("journal", log.run, 1, log.n_first - 1, log.at_first, why))
        kept_old = log.noted_young if log.noted_old is None else log.noted_old
        last = firsts.get(log.run, (log.recorded or 0) + 1) - 1
        if outcomes_first and log.is_older(young) and kept_old is not None and last > kept_old:
            findings.append(hole_finding("outcomes", log.run, kept_old + 1, last, log.at_last, why))
    return findings


_OPEN_S = 3600.0


def runs_of(
    numberings: Iterable[Numbering],
    since: int | None = None,
    *,
    ended: frozenset[str] = frozenset(),
    growing: bool = False,
) -> list[Run]:
    """`ended`: runs whose process is known to be no more. `growing`: outcome records were stored while it was asked
    how far everything goes, so the latest run may have its first one behind what was read."""
    known = [log for log in numberings if log.run is not None]
    latest = max((began_ms(log.run) for log in known if log.run), default=0)
    recorded = {log.run for log in known if log.source == "outcomes"}
    runs = []
    for log in known:
        is_latest = log.run is not None and began_ms(log.run) == latest and log.run not in ended
        if log.source == "outcomes" and log.run is not None:
            open_state: State = "live" if is_latest else "killed"
            state: State = "closed" if log.closed else open_state
            runs.append(Run(log.run, log.low or 1, state, log.at_first or 0, log.at_last or 0, log.base(since)))
        elif growing and is_latest and log.run is not None and log.run not in recorded:
            runs.append(Run(log.run, 1, "live", log.at_first or 0, log.at_last or 0))
    return sorted(runs, key=lambda run: (began_ms(run.name), run.name))


def tail_findings(numberings: Iterable[Numbering], since: int | None) -> list[dict[str, Any]]:
    """The journal notes how many outcome records of its run were stored: those behind the last one that is there are
    missing. A run that began before the first record that is kept may have lost all of them to its age."""
    known = list(numberings)
    lasts = {log.run: log.n_last or 0 for log in known if log.source == "outcomes"}
    findings = []
    for log in known:
        last, recorded = lasts.get(log.run, 0), log.recorded or 0
        if log.source == "journal" and log.run is not None and recorded > last and (last or not log.is_older(since)):
            text = f"the journal notes that {recorded} were stored"
            findings.append(hole_finding("outcomes", log.run, last + 1, recorded, log.at_last, f"; {text}"))
    return findings


def numbering_findings(numberings: Iterable[Numbering], digests: frozenset[str]) -> list[dict[str, Any]]:
    """Unreadable records, doubled records, tables that are not stored. Holes need a second look at the records."""
    findings = []
    for log in numberings:
        if log.run is None:
            findings.append(q1(None, log.records, None, f"{log.records} {log.source} records cannot be read"))
            continue
        doubled = log.records - log.n_distinct
        if doubled:
            text = f"{doubled} {log.source} records are there twice (same run, same n)"
            findings.append(q1(log.run, doubled, log.at_last, text))
        missing = [digest for digest in log.digests if digest not in digests]
        findings += [q1(log.run, 1, log.at_first, f"no expanded tables under digest {digest}") for digest in missing]
    return findings


def hole_finding(source: str, run: str, first: int, last: int, at: int | None, more: str = "") -> dict[str, Any]:
    count = last - first + 1
    numbers = f"n {first}" if count == 1 else f"n {first} to {last}"
    return q1(run, count, at, f"{count} {source} record{'s' if count > 1 else ''} missing: {numbers}{more}")


def q1(run: str | None, count: int, at: int | None, detail: str) -> dict[str, Any]:
    return {"class": "Q1", "run": run, "count": count, "at": at, "detail": detail}
