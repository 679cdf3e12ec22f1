"""The history as gateways answer it, of the time that a page asks for. It lies in their logs, so it is there after any
restart, of a gateway as of the console; it ends a minute ago. What this console saw itself, of the last hour and to the
second, is `console.facts.rises` (ADR 0110).

Microseconds since 1970.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, NamedTuple

from gateway.verdict.history import MINUTE_US, STEPS_US, HistoryRow
from gateway.verdict.standing import WAITS

SPANS: Final[Mapping[str, tuple[int, str]]] = {
    "1h": (60, "minute"),
    "6h": (360, "5min"),
    "24h": (1_440, "15min"),
    "7d": (10_080, "hour"),
    "14d": (20_160, "hour"),
}
"""Minutes, and how long one bar is."""
SPAN: Final = "6h"
STORED: Final = "the realm itself"
"""In place of a gateway's name: the history was read without one."""


class Asked(NamedTuple):
    """`to_us`: the end; 0: now, whenever that is."""

    span: str = SPAN
    to_us: int = 0

    @property
    def step(self) -> str:
        return SPANS[self.span][1]

    @property
    def step_us(self) -> int:
        return STEPS_US[self.step]

    @property
    def span_us(self) -> int:
        return SPANS[self.span][0] * MINUTE_US

    def window(self, now_us: int) -> tuple[int, int]:
        """Of whole bars; the last one may be under way."""
        end_us = -(-(self.to_us or now_us) // self.step_us) * self.step_us
        return end_us - self.span_us, end_us


def asked_of(query: Mapping[str, str], now_us: int) -> Asked:
    """`?span=&to=2026-11-25T10:00Z`; of what cannot be read the first choice."""
    span, to_us = query.get("span", ""), _us_of(query.get("to", ""))
    return Asked(span if span in SPANS else SPAN, to_us if 0 < to_us < now_us else 0)


def _us_of(written: str) -> int:
    try:
        at = datetime.fromisoformat(written)
        return int((at if at.tzinfo is not None else at.replace(tzinfo=UTC)).timestamp() * 1e6)
    except (ValueError, OverflowError):
        return 0


def written(at_us: int) -> str:
    """As it stands in an address: to the minute."""
    return datetime.fromtimestamp(at_us / 1e6, UTC).strftime("%Y-%m-%dT%H:%MZ")


@dataclass(frozen=True, slots=True)
class Reading:
    """What one gateway answered last, whole. `at_us`: when, by its clock; 0: it never did. `known_us`: when its oldest
    record begins; None: there is none. `problem`: why it could not be read since then."""

    rows: tuple[HistoryRow, ...] = ()
    known_us: int | None = None
    at_us: int = 0
    read_us: int = 0  # by our clock
    state: str = ""
    is_cut: bool = False
    problem: str = ""

    @property
    def waits(self) -> bool:
        """For its realm: it has no history to answer from."""
        return self.state in WAITS

    @property
    def counted_us(self) -> int:
        """The end of the last record; 0: there is none."""
        return max((row.end_us for row in self.rows), default=0)


NEVER: Final = Reading()


@dataclass(frozen=True, slots=True)
class History:
    """Of all gateways, by name. Those that are not in it have not been asked, or have not answered yet. `stored`: out
    of the realm itself, while no gateway could be read."""

    asked: Asked = field(default_factory=Asked)
    readings: Mapping[str, Reading] = field(default_factory=dict)
    stored: Reading | None = None

    def of(self, gateway: str) -> Reading:
        return self.readings.get(gateway, NEVER)

    @property
    def is_missed(self) -> bool:
        """No gateway can be read."""
        return all(reading.problem or reading.waits for reading in self.readings.values())


NOTHING_READ: Final = History()
