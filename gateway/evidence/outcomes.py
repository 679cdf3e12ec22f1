"""The evidence: the outcomes that AMQP peers got, at most one record a turn (docs/records.md "Outcomes"). Turns that
follow each other fast share one: a record is due `DUE_US` after the one before, or with `DUE_COUNT` outcomes.

Every delivery gets its seq here, and leaves one entry here, when it has its outcome. Entries that agree in everything
but seq and EID are one group, so that a turn costs a few groups of columns. A disposition never waits for its record.
What was decided about something else than a delivery has records of its own here (`gateway.evidence.decisions`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import orjson

from gateway.evidence.counters import OutcomeCounters
from gateway.evidence.decisions import Decisions, Entry
from gateway.evidence.kept_detail import kept_detail
from gateway.evidence.outcome_key import OutcomeKey
from gateway.evidence.recent_errors import RecentErrors
from gateway.evidence.seq_times import SeqTimes
from mappings import Origin
from native_backend.state.intervals import Intervals
from native_backend.state.outcome_detail import OutcomeDetail

FORMAT = 1
DUE_US = 5_000
DUE_COUNT = 8_192  # outcomes: what one record may grow to
ERRORS_MAX = 50
"""Different errors of consumers that one record holds; deliveries with others are counted."""
_STORED = "stored"  # also where its EID is not known
MESSAGE_IDS_MAX = 50
"""Messages that were not stored of which one record has the message-ids; the others are counted."""


class Unstored(Protocol):
    """Messages of a publisher, of which some were not stored."""

    def message_ids(self, seqs: Sequence[int], most: int) -> list[tuple[int, str | None]]:
        """Of the first `most`, with their seqs. Empty: it has none; None: it cannot be named."""


@dataclass(slots=True)
class _Group:
    key: OutcomeKey
    seqs: list[int] = field(default_factory=list)
    eids: list[int] = field(default_factory=list)
    errors: dict[OutcomeDetail, list[int]] | None = None  # few groups have any
    errors_left_out: int = 0
    message_ids: list[tuple[int, str]] = field(default_factory=list)
    message_ids_left_out: int = 0

    def tell_message_ids(self, messages: Unstored | None, seqs: Sequence[int], room: int) -> int:
        """These messages were not stored; how many of them were looked at."""
        looked_at = messages.message_ids(seqs, room) if messages is not None and room > 0 else []
        self.message_ids += [(seq, name) for seq, name in looked_at if name]
        self.message_ids_left_out += len(seqs) - sum(name is not None for _, name in looked_at)
        return len(looked_at)

    def tell_error(self, detail: OutcomeDetail, seqs: Sequence[int], room: int) -> int:
        """These deliveries were given back with that error; how many more different ones there are now."""
        errors = self.errors = self.errors or {}
        known = errors.get(detail)
        if known is None and room <= 0:
            self.errors_left_out += len(seqs)
            return 0
        errors.setdefault(detail, []).extend(seqs)
        return int(known is None)

    def columns(self) -> dict[str, Any]:
        columns = {**self.key.columns(), "seq": self.seqs, "eid": self.eids}
        if self.errors:
            columns["errors"] = [{**kept_detail(error).document(), "seq": seqs} for error, seqs in self.errors.items()]
        if self.errors_left_out:
            columns["errors_left_out"] = self.errors_left_out
        if self.message_ids:
            columns["message_ids"] = self.message_ids
        if self.message_ids_left_out:
            columns["message_ids_left_out"] = self.message_ids_left_out
        return columns


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
        self.origin = origin  # of the active tables; what they did not decide names its own
        self.records = 0
        self.counters = OutcomeCounters()
        self.recent = RecentErrors(run, epoch_us)
        self.decisions = Decisions(self.recent.decided)
        self.seq_times = SeqTimes()
        self._append = append
        self._epoch_us = epoch_us
        self._next_seq = 1
        self._reported = Intervals()
        self._low = self._written_low = 1
        self._groups: dict[int, _Group] = {}
        self._count = 0  # outcomes since the last record
        self._errors = 0  # different ones of consumers, in the groups above
        self._message_ids = 0  # messages whose ids were looked for, in the groups above
        self._flushed_us = 0

    def number(self, count: int) -> int:
        """The first of `count` new seqs."""
        first = self._next_seq
        self._next_seq += count
        return first

    @property
    def numbered(self) -> int:
        """Deliveries that have a seq."""
        return self._next_seq - 1

    def advance(self, now_s: float) -> None:
        """Once a second."""
        self.decisions.advance(now_s)
        self.seq_times.note(self._next_seq, now_s)

    @property
    def open(self) -> int:
        """Deliveries that have a seq and no outcome yet: at most this many."""
        return self._next_seq - self._low

    def tell(
        self, key: OutcomeKey, seqs: Sequence[int], eids: Sequence[int], detail: OutcomeDetail | None = None
    ) -> None:
        """These deliveries have their outcome. `detail`: what else their consumer said."""
        group = self._group(key)
        group.seqs.extend(seqs)
        group.eids.extend(eids)
        self._count += len(seqs)
        if detail is not None and detail.condition:
            self._errors += group.tell_error(detail, seqs, ERRORS_MAX - self._errors)
        self._close(seqs)

    def tell_published(
        self, key: OutcomeKey, seqs: Sequence[int], eids: Sequence[int], messages: Unstored | None
    ) -> None:
        """The same of a publisher's. `messages`: theirs, as far as they are known; asked where they were not stored."""
        if eids[0] < 0 and key.answer != _STORED:
            room = MESSAGE_IDS_MAX - self._message_ids
            self._message_ids += self._group(key).tell_message_ids(messages, seqs, room)
        self.tell(key, seqs, eids)

    def _group(self, key: OutcomeKey) -> _Group:
        group = self._groups.get(id(key))
        if group is None:
            group = self._groups[id(key)] = _Group(key)
        return group

    def _close(self, seqs: Sequence[int]) -> None:
        first, last = seqs[0], seqs[-1]
        reported = self._reported
        if last - first + 1 == len(seqs) and (type(seqs) is range or _is_dense(seqs)):
            if first == self._low and not reported:  # in order, as of most publishers
                self._low = last + 1
                return
            reported.add(first, last)
        else:
            for seq in seqs:
                reported.add(seq, seq)
        self._low = reported.absorb(self._low)

    def begin(self) -> None:
        """The run's first record, without outcomes: a run that has none has lost its evidence."""
        self._flushed_us = self._epoch_us()
        self._write(self.origin, self._low, False, [])

    def flush(self, closed: bool = False, at_once: bool = False) -> None:
        """End of a turn: the outcomes since the last record become a record, when it is due, or `at_once`."""
        if not self._groups and not self.decisions.waiting and not closed:
            return
        now_us = self._epoch_us()
        if not closed and not at_once and self._count < DUE_COUNT and 0 <= now_us - self._flushed_us < DUE_US:
            return  # the next turn is not far
        self._flushed_us = now_us
        groups: dict[Origin, list[dict[str, Any]]] = {}
        for group in self._groups.values():
            origin = group.key.rule.origin or self.origin
            groups.setdefault(origin, []).append(group.columns())
            group.key.link.last.at_us = now_us
            if self.counters.add(group.key, len(group.seqs)):
                self.recent.delivery(group.key, group.seqs[0], len(group.seqs), now_us)
            elif group.key.is_given_up:
                self.recent.given_up(group.key, group.seqs, group.errors or {}, now_us)
        self._groups, self._count, self._errors, self._message_ids = {}, 0, 0, 0
        for origin, entries in self.decisions.take(self.origin):
            self._write(origin, self._written_low, False, [], entries)
        if not groups and not closed:
            return
        *others, last = groups or [self.origin]  # after a reload there may be several: each names its own tables
        for origin in others:
            self._write(origin, self._written_low, False, groups[origin])
        self._write(last, self._low, closed, groups.get(last, []))
        self._written_low = self._low

    def _write(
        self, origin: Origin, low: int, closed: bool, groups: list[dict[str, Any]], decisions: list[Entry] | None = None
    ) -> None:
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
        if decisions:
            record["decisions"] = decisions
        self._append(self.run.encode(), orjson.dumps(record))


def _is_dense(seqs: Sequence[int]) -> bool:
    """As many as there are from the first to the last: each of these once, in any order?"""
    if len(seqs) < 3:
        return True
    dense = list(range(seqs[0], seqs[-1] + 1))
    return seqs == dense or sorted(seqs) == dense
