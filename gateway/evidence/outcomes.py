"""The evidence: what the AMQP peers were told, at most one record a turn (docs/records.md "Outcomes"). Turns that
follow each other fast share one: a record is due `DUE_US` after the one before, or with `DUE_COUNT` outcomes.

Every delivery gets its seq here, and leaves one entry here, when it has its outcome. Entries that agree in
everything but seq and EID are one group, so that a turn costs a few groups of columns. A disposition never waits for
its record. May import: `gateway.tally`, `mappings`, `native_backend.intervals`; JSON by orjson.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from gateway.tally import Tally
from mappings import Decision, Origin
from native_backend.intervals import Intervals

FORMAT = 1
DUE_US = 5_000
DUE_COUNT = 8_192  # outcomes: what one record may grow to


@dataclass(slots=True)
class LinkFacts:
    """What an outcome record says of a link. `number` is unique in a run."""

    number: int
    direction: str
    name: str
    container: str
    node: str | None = None
    store: int | None = None
    durable: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Verdict:
    """All that deliveries of one group share. Links keep theirs, so that a group is found by identity."""

    link: LinkFacts
    rule: Decision
    answer_rule: Decision | None
    operation: str
    cause: str
    answer: str | None
    native: str | None
    outcome: str
    condition: str | None
    klass: str | None
    presettled: bool

    def columns(self) -> dict[str, Any]:
        link, answer = self.link, self.answer_rule
        return {
            "direction": link.direction,
            "link": link.number,
            "name": link.name,
            "container": link.container,
            "node": link.node,
            "store": link.store,
            "durable": link.durable,
            "table": self.rule.table,
            "cell": self.rule.cell,
            "rule": self.rule.rule,
            "answer_table": answer.table if answer else None,
            "answer_cell": answer.cell if answer else None,
            "answer_rule": answer.rule if answer else None,
            "operation": self.operation,
            "cause": self.cause,
            "answer": self.answer,
            "native": self.native,
            "outcome": self.outcome,
            "condition": self.condition,
            "class": self.klass,
            "presettled": int(self.presettled),
        }


@dataclass(slots=True)
class _Group:
    verdict: Verdict
    seqs: list[int] = field(default_factory=list)
    eids: list[int] = field(default_factory=list)


class Outcomes:
    """One run's evidence. `append(key, value)` hands a record to the log."""

    def __init__(
        self,
        run: str,
        origin: Origin,
        append: Callable[[bytes, bytes], None],
        epoch_us: Callable[[], int],
    ) -> None:
        self.run = run
        self.origin = origin  # of the tables in force; what they did not decide names its own
        self.records = 0
        self.tally = Tally()
        self._append = append
        self._epoch_us = epoch_us
        self._next_seq = 1
        self._told = Intervals()
        self._low = self._written_low = 1
        self._groups: dict[int, _Group] = {}
        self._count = 0  # outcomes told since the last record
        self._flushed_us = 0

    def number(self, count: int) -> int:
        """The first of `count` new seqs."""
        first = self._next_seq
        self._next_seq += count
        return first

    @property
    def next_seq(self) -> int:
        """What `number` gives next."""
        return self._next_seq

    @property
    def open(self) -> int:
        """Deliveries that have a seq and no outcome yet: at most this many."""
        return self._next_seq - self._low

    def tell(self, verdict: Verdict, seqs: Sequence[int], eids: Sequence[int]) -> None:
        """These deliveries have their outcome."""
        group = self._groups.get(id(verdict))
        if group is None:
            group = self._groups[id(verdict)] = _Group(verdict)
        group.seqs.extend(seqs)
        group.eids.extend(eids)
        self._count += len(seqs)
        self._close(seqs)

    def _close(self, seqs: Sequence[int]) -> None:
        first, last = seqs[0], seqs[-1]
        told = self._told
        if last - first + 1 == len(seqs) and (len(seqs) < 3 or sorted(seqs) == list(range(first, last + 1))):
            told.add(first, last)
        else:
            for seq in seqs:
                told.add(seq, seq)
        self._low = told.absorb(self._low)

    def flush(self, closed: bool = False) -> None:
        """End of a turn: what was told since the last record becomes one, when that is due."""
        if not self._groups and not closed:
            return
        now_us = self._epoch_us()
        if not closed and self._count < DUE_COUNT and 0 <= now_us - self._flushed_us < DUE_US:
            return  # the next turn is not far
        self._flushed_us = now_us
        groups: dict[Origin, list[dict[str, Any]]] = {}
        for group in self._groups.values():
            origin = group.verdict.rule.origin or self.origin
            columns = {**group.verdict.columns(), "seq": group.seqs, "eid": group.eids}
            groups.setdefault(origin, []).append(columns)
            self.tally.add(group.verdict, len(group.seqs))
        self._groups, self._count = {}, 0
        *others, last = groups or [self.origin]  # after a reload there may be several: each names its own tables
        for origin in others:
            self._write(origin, self._written_low, False, groups[origin])
        self._write(last, self._low, closed, groups.get(last, []))
        self._written_low = self._low

    def _write(self, origin: Origin, low: int, closed: bool, groups: list[dict[str, Any]]) -> None:
        self.records += 1
        record = {
            "v": FORMAT,
            "run": self.run,
            "n": self.records,
            "at": self._flushed_us,
            "low": low,
            "next": self._next_seq,
            "digest": origin.digest,
            "profile": origin.profile,
            "closed": int(closed),
            "groups": groups,
        }
        self._append(self.run.encode(), orjson.dumps(record))
