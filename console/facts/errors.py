"""The error board: what peers were answered that they did not ask for, by class, condition, native code and rule.

Counts come from the counters of the gateways; who met it, where and when, from the refusals and faults that they keep.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from console.facts.gateway import Gateway
from console.facts.rises import MINUTE_US, Key
from console.limits import MINUTES
from gateway.verdict.answers import Row
from gateway.verdict.kinds import (
    ELSEWHERE,
    GIVEN_UP,
    WHO_MAX,
    Kind,
    board_class,
    is_counted_as_fault,
    kind_of_entry,
    who_of,
)
from gateway.verdict.limits import ERRORS

CLASSES: Final = ("fatal", "transient", "indeterminate", "other")


class Shown(NamedTuple):
    """Which part of what is known: so many minutes until now, one gateway or all (empty), one direction or both."""

    now_us: int
    minutes: int
    gateway: str = ""

    def of(self, gateways: Iterable[Gateway]) -> list[Gateway]:
        return [gateway for gateway in gateways if self.gateway in ("", gateway.name)]


def kind_of(key: Key) -> Kind | None:
    """None: it counts no error."""
    if key[0] == "faults":
        return None if key[1] in ELSEWHERE else Kind("fatal", "", key[1], f"fault.{key[1]}")
    if key[0] != "errors":
        return None
    _, condition, code, klass, rule, _node = key
    if is_counted_as_fault(rule):
        return None
    return Kind(board_class(klass, code), condition, code, rule)


class Board:
    """Of several gateways. `rows`: what changed first, then what is much."""

    def __init__(self, gateways: Sequence[Gateway], shown: Shown) -> None:
        self.shown = shown
        self._gateways = shown.of(gateways)
        self._entries = _entries(self._gateways)
        self._now, self._before, self._totals, self._by_gateway = self._sums()
        self.knows_before = _knows_before(self._gateways, shown)
        self.rows = sorted((self._row(kind) for kind in self._kinds()), key=_order)

    def _kinds(self) -> set[Kind]:
        """Those that were counted in the run, in the hour before, or are kept."""
        return {*self._totals, *self._now, *self._before, *self._entries}

    def _sums(self) -> tuple[Counter[Kind], Counter[Kind], Counter[Kind], dict[Kind, Counter[str]]]:
        now, before, totals = Counter[Kind](), Counter[Kind](), Counter[Kind]()
        by_gateway: dict[Kind, Counter[str]] = defaultdict(Counter)
        for gateway in self._gateways:
            rises, shown = gateway.rises, self.shown
            counted = rises.counts(shown.now_us, shown.minutes)
            for into, counts in (
                (now, counted),
                (before, rises.counts(shown.now_us, shown.minutes, shown.minutes)),
                (totals, rises.totals),
            ):
                for key, count in counts.items():
                    if (kind := kind_of(key)) is not None and count:
                        into[kind] += int(count)
                        if into is now:
                            by_gateway[kind][gateway.name] += int(count)
        return now, before, totals, by_gateway

    def _row(self, kind: Kind) -> dict[str, Any]:
        entries = self._entries.get(kind, [])
        count, before = self._now[kind], self._before[kind]
        return {
            **kind.address,
            "condition": kind.condition or next((row["condition"] for row in entries if row["condition"]), ""),
            "decided_by": next((row["rule"] for row in entries if row["rule"]), "" if kind.is_fault else kind.rule),
            "outcome": next((row["outcome"] for row in entries if row["outcome"]), ""),
            "what": next((row["what"] for row in entries), "login" if kind.code in _LOGIN else "delivery"),
            "count": count,
            "before": before if self.knows_before else None,
            "in_this_run": self._totals[kind],
            "nodes": self._nodes(kind, entries),
            "who": who_of(entries),
            "gateways": dict(self._by_gateway.get(kind, {})),
            "first_us": min((int(row["first_us"] or 0) for row in entries), default=0),
            "last_us": self._last_us(kind, entries),
            "series": self.series(lambda kind_there: kind_there == kind),
            "remedies": [*dict.fromkeys(row["remedy"] for row in reversed(entries) if row["remedy"])][:3],
            "examples": [*reversed(entries)],
        }

    def _last_us(self, kind: Kind, entries: Sequence[Row]) -> int:
        """To the second where an entry says it, else to the minute."""
        known = max((int(entry["at_us"] or 0) for entry in entries), default=0)
        if known:
            return known
        return min(
            self.shown.now_us,
            max((gateway.rises.last_us(lambda key: kind_of(key) == kind) for gateway in self._gateways), default=0),
        )

    def _nodes(self, kind: Kind, entries: Sequence[Row]) -> list[dict[str, Any]]:
        """By name: those that are counted by name, and of others those that entries name."""
        counts: Counter[str] = Counter()
        for gateway in self._gateways:
            for key, count in gateway.rises.totals.items():
                if key[0] == "errors" and key[5] and kind_of(key) == kind:
                    counts[key[5]] += int(count)
        for entry in entries:
            if entry["node"] and entry["node"] not in counts:
                counts[entry["node"]] += int(entry["count"] or 0)
        return [{"node": node, "count": count} for node, count in counts.most_common(WHO_MAX)]

    def series(self, wanted: Callable[[Kind], bool]) -> list[int]:
        """Each minute's sum over the gateways."""

        def is_wanted(key: Key) -> bool:
            kind = kind_of(key)
            return kind is not None and wanted(kind)

        counts = [gateway.rises.series(self.shown.now_us, self.shown.minutes, is_wanted) for gateway in self._gateways]
        return [sum(column) for column in zip(*counts, strict=True)] if counts else [0] * self.shown.minutes

    def watched(self) -> list[bool]:
        """Was every gateway that answers read in that minute?"""
        now_us, minutes = self.shown.now_us, self.shown.minutes
        readings = [gateway.rises.watched(now_us, minutes) for gateway in self._gateways if gateway.answered_us]
        return [all(column) for column in zip(*readings, strict=True)] if readings else [False] * self.shown.minutes


def _knows_before(gateways: Sequence[Gateway], shown: Shown) -> bool:
    """Are the minutes before those that are shown known, too? By counters, or as nothing kept was pushed out."""
    if shown.minutes * 2 > MINUTES:
        return False
    since_us = shown.now_us - 2 * shown.minutes * MINUTE_US
    return all(
        gateway.rises.known_us <= since_us or len(gateway.errors) < ERRORS
        for gateway in gateways
        if gateway.answered_us
    )


_LOGIN: Final = ("failed-login", "login-unheard", "sasl")


def _entries(gateways: Iterable[Gateway]) -> dict[Kind, list[Row]]:
    """Of all gateways, the oldest first, each with the gateway's name."""
    by_kind: dict[Kind, list[Row]] = defaultdict(list)
    rows = [{**row, "gateway": gateway.name} for gateway in gateways for row in gateway.errors]
    for row in sorted(rows, key=lambda row: row["at_us"] or 0):
        if row["what"] == GIVEN_UP:
            continue
        by_kind[kind_of_entry(row)].append(row)
    return by_kind


def _order(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """What is new, then what rose most, then what is much; what did not happen in the time comes last."""
    is_new = bool(row["count"]) and not row["before"]
    return (not row["count"], not is_new, -int(row["count"]), -int(row["last_us"]), row["rule"], row["code"])


def changes(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """What changed most against the time before: at most seven, with at least three more; new first, then by factor."""
    risen = [row for row in rows if row["before"] is not None and abs(row["count"] - row["before"]) >= 3]
    return sorted(risen, key=lambda row: (bool(row["before"]), -row["count"] / max(1, row["before"])))[:7]
