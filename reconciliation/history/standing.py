"""How acknowledgements stand against what was found: what each covers, which have expired, which are of nothing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from reconciliation.history.acknowledged import Acknowledged, Acknowledgement
from reconciliation.history.cause import Cause


@dataclass(frozen=True, slots=True)
class Known:
    """One acknowledgement. `cause`: its finding; None: that is not found any more. `covered`: so many of its messages
    are acknowledged, none where it has `expired`."""

    said: Acknowledgement
    cause: Cause | None
    covered: int
    expired: bool

    @property
    def has_grown(self) -> bool:
        """Messages came that are not acknowledged."""
        return self.cause is not None and not self.expired and self.cause.open > 0

    def as_json(self) -> dict[str, Any]:
        entry, cause = self.said, self.cause
        place = {} if cause is None else {"node": cause.node, "part": cause.part, "durable": cause.durable}
        return {
            "id": entry.id,
            "class": entry.id.partition("-")[0],
            **place,
            "until": entry.until.isoformat(),
            "by": entry.by,
            "reason": entry.reason,
            "found": cause is not None,
            "messages": 0 if cause is None else cause.count,
            "acknowledged": self.covered,
            "expired": self.expired,
        }


def applied(causes: Iterable[Cause], acknowledged: Acknowledged, now_us: int) -> list[Known]:
    """Marks in each finding what is not covered; all of them as the file has them."""
    named = {finding.id: finding for finding in causes}
    today = day_at(now_us)
    standings = []
    for entry in acknowledged.entries:
        cause, expired = named.get(entry.id), entry.until < today
        covered = 0
        if cause is not None and not expired:
            cause.uncovered = cause.members.without(entry.members)
            cause.open = cause.uncovered.count
            covered = cause.count - cause.open
        standings.append(Known(entry, cause, covered, expired))
    return standings


def day_at(at_us: int) -> date:
    return datetime.fromtimestamp(at_us / 1_000_000, UTC).date()
