"""What tables decided about something else than a delivery: attaches that were refused, frames that were faults,
subscriptions that ended, and what was requested of coordinators. It goes into the outcome records.

A peer must not be able to fill the disk: a refusal or a fault is recorded where it has a line of its own in the log
(`Notices`), requests and ends are counted by who, what and why and recorded every `SUMS_S`. What is left out is
counted, too. Characters, counts, monotonic seconds. Records: docs/records.md "Outcomes".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from typing import Any, Final

from gateway.evidence.counters import FATAL
from gateway.evidence.notices import PeerIdentity
from gateway.evidence.outcome_key import class_of
from mappings import Decision, Origin

SUMS_S: Final = 10.0
LEFT_OUT_S: Final = 60.0
SUMS_MAX: Final = 1_000
"""Different ones that are counted in `SUMS_S`; others are left out."""
PIECE: Final = 100
"""Of one record: each has at most some 5 kB."""
NAME_CHARACTERS: Final = 200

Entry = dict[str, Any]


class Decisions:
    """One run's."""

    def __init__(self, on_error: Callable[[Entry], None] = lambda _: None) -> None:
        """`on_error` hears of each decision that refuses or ends something."""
        self._on_error = on_error
        self.waiting: list[tuple[Origin | None, Entry]] = []  # for the next record
        self._sums: dict[Hashable, tuple[Entry, Decision, Decision | None]] = {}
        self._sums_s = self._left_out_s = 0.0
        self._left_out: Counter[str] = Counter()  # by `what`

    def refused(self, has_line: bool, what: str, rule: Decision | None, peer: PeerIdentity, **columns: Any) -> None:
        """An attach that was refused, or a fault. `has_line`: what `Notices` said of it."""
        entry = _entry(what, rule, None, peer, columns)
        self._on_error(entry)
        if has_line:
            self.waiting.append((rule.origin if rule else None, {**entry, "count": 1}))
        else:
            self._left_out[what] += 1

    def counted(
        self, what: str, rule: Decision, answer_rule: Decision | None, peer: PeerIdentity, **columns: str | None
    ) -> None:
        """One more of what may come often."""
        if (answer_rule or rule).then.get("condition"):
            self._on_error(_entry(what, rule, answer_rule, peer, columns))
        who = peer.subject.user, peer.container, peer.address
        key = (what, id(rule), id(answer_rule), who, *columns.values())
        known = self._sums.get(key)
        if known is not None:
            known[0]["count"] += 1
        elif len(self._sums) < SUMS_MAX:
            self._sums[key] = {**_entry(what, rule, answer_rule, peer, columns), "count": 1}, rule, answer_rule
        else:
            self._left_out[what] += 1

    def advance(self, now_s: float) -> None:
        """Once in a while: what was counted is due."""
        if now_s - self._sums_s >= SUMS_S:
            self._sums_s = now_s
            self._sum_up()
        if now_s - self._left_out_s >= LEFT_OUT_S:
            self._left_out_s = now_s
            self._say_left_out()

    def close(self) -> None:
        """The run ends: all of it is due."""
        self._sum_up()
        self._say_left_out()

    def _sum_up(self) -> None:
        self.waiting += [((last or rule).origin, entry) for entry, rule, last in self._sums.values()]
        self._sums = {}

    def _say_left_out(self) -> None:
        self.waiting += [(None, {"what": what, "left_out": count}) for what, count in sorted(self._left_out.items())]
        self._left_out.clear()

    def take(self, origin: Origin) -> list[tuple[Origin, list[Entry]]]:
        """What waits, in pieces of one record each. `origin`: of the active tables."""
        by_origin: dict[Origin, list[Entry]] = {}
        for own, entry in self.waiting:
            by_origin.setdefault(own or origin, []).append(entry)
        self.waiting = []
        return [
            (own, entries[at : at + PIECE])
            for own, entries in by_origin.items()
            for at in range(0, len(entries), PIECE)
        ]


def _entry(
    what: str, rule: Decision | None, answer_rule: Decision | None, peer: PeerIdentity, columns: dict[str, Any]
) -> Entry:
    """Fields that are empty are left out."""
    entry: Entry = {"what": what, "user": peer.subject.user, "container": peer.container, "address": peer.address}
    entry |= columns
    for prefix, decision in (("", rule), ("answer_", answer_rule)):
        if decision is not None:
            entry |= {f"{prefix}table": decision.table, f"{prefix}cell": decision.cell, f"{prefix}rule": decision.rule}
    then = (answer_rule or rule).then if rule is not None else {}
    entry |= {"outcome": then.get("outcome"), "condition": entry.get("condition") or then.get("condition")}
    entry["class"] = class_of(answer_rule or rule) if rule is not None else FATAL
    return {key: _cut(value) for key, value in entry.items() if value not in (None, "")}


def _cut(value: Any) -> Any:
    return value[:NAME_CHARACTERS] if isinstance(value, str) else value
