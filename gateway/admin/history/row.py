"""A row of `/api/history`: the sum of some records of the history, of one as well as of an hour's.

Microseconds since 1970, counts.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from gateway.evidence.history import FAMILIES

_NUMBERS: Final = ("missed", "new_connections", "new_links", "journal_records", "outcome_records", "evidence_failed")
_MOST: Final = ("connections", "links")  # at the end of one of the records
Row = dict[str, Any]


class RowSum:
    """See the module's docstring."""

    def __init__(self) -> None:
        self._id = self._records = self._begin_us = self._end_us = 0
        self._runs: dict[str, Row] = {}
        self._numbers: Counter[str] = Counter()
        self._most = dict.fromkeys(_MOST, 0)
        self._counts: dict[str, Counter[tuple[str, ...]]] = {name: Counter() for name in FAMILIES}
        self._seconds: dict[str, tuple[list[int], int]] = {}

    def add(self, offset: int, record: Row) -> None:
        """A record, and where it is in its topic."""
        self._begin_us = min(self._begin_us, record["begin"]) if self._records else record["begin"]
        self._end_us = max(self._end_us, record["end"])
        self._id, self._records = offset, self._records + 1
        self._add_run(record)
        for name in _NUMBERS:
            self._numbers[name] += record.get(name, 0)
        for name in _MOST:
            self._most[name] = max(self._most[name], record.get(name, 0))
        for name, counts in self._counts.items():
            for *key, count in record.get(name, ()):
                counts[tuple(key)] += count
        for name, classes in record.get("seconds", {}).items():
            known, total_us = self._seconds.get(name) or ([0] * len(classes["counts"]), 0)
            counted = [a + b for a, b in zip(known, classes["counts"], strict=True)]
            self._seconds[name] = counted, total_us + classes["total_us"]

    def _add_run(self, record: Row) -> None:
        """The records of one run follow one another without a gap."""
        name, begin_us, end_us, closed = record["run"], record["begin"], record["end"], bool(record.get("closed"))
        known = self._runs.setdefault(name, {"run": name, "begin_us": begin_us, "end_us": end_us, "closed": closed})
        known["begin_us"], known["end_us"] = min(known["begin_us"], begin_us), max(known["end_us"], end_us)
        known["closed"] |= closed

    def row(self) -> Row:
        return {
            "id": str(self._id),
            "begin_us": self._begin_us,
            "end_us": self._end_us,
            "runs": [*self._runs.values()],
            "records": self._records,
            **{name: self._numbers[name] for name in _NUMBERS},
            **self._most,
            **{name: [[*key, count] for key, count in counts.most_common()] for name, counts in self._counts.items()},
            "seconds": {
                name: {"counts": counts, "total_us": total_us} for name, (counts, total_us) in self._seconds.items()
            },
        }
