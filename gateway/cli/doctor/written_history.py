"""Is the history written? A gateway that serves writes a record each minute (docs/records.md "History").

Seconds since 1970. `LogError` is the caller's. Blocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import orjson

from gateway.cli.doctor.finding import Finding, not_looked_at, ok, warn
from gateway.cli.doctor.realm import lease_of
from native_backend.journal.lease_records import lease_topic
from native_backend.journal.process_liveness import SystemLiveness
from native_backend.log.port import Log, if_there
from native_backend.nodes.words import HISTORY, history_topic

_DEADLINE_S: Final = 10.0
_TAIL: Final = 200
_LATE_S: Final = 180.0
_INTERVALS: Final = 3


def written(log: Log, prefix: str, interval_s: float, now_s: float) -> Iterator[Finding]:
    """A gateway that has served for three minutes, or three intervals where those are longer, has a record that is no
    older."""
    lease = lease_of(log, prefix)
    if lease is None:
        yield ok("history", "the realm was never opened")
        return
    if lease.free or SystemLiveness().gone(lease.process):
        yield ok("history", "no gateway serves, so none is written")
        return
    late_s = max(_LATE_S, _INTERVALS * interval_s)
    if HISTORY not in lease.topics:
        yield ok("history", f"run {lease.run} is of an earlier release, which writes none")
        return
    newest_s = _newest_s(log, prefix)
    serves_s = now_s - _since_s(log, prefix, lease.run, now_s)
    if newest_s is not None and now_s - newest_s <= late_s:
        yield ok("history", f"its newest record is {max(0.0, now_s - newest_s):.0f} s old")
    elif serves_s <= late_s:
        yield not_looked_at("history", f"run {lease.run} has served for {max(0.0, serves_s):.0f} s: too early to say")
    else:
        age = (
            "there is no record" if newest_s is None else f"the newest record is {(now_s - newest_s) / 60:.0f} min old"
        )
        words = f"run {lease.run} has served for {serves_s / 60:.0f} min, and {age}"
        remedy = (
            f"see whether that gateway lives, and whether its log says that records of the history are not stored; it "
            f"needs room in the log and the right to write to {history_topic(prefix)}"
        )
        yield warn("history", words, remedy)


def _newest_s(log: Log, prefix: str) -> float | None:
    """When the newest record ends; None: there is none."""
    with if_there():
        return max((record["end"] / 1e6 for record in _newest(log, history_topic(prefix))), default=None)
    return None


def _since_s(log: Log, prefix: str, run: str, now_s: float) -> float:
    """Since when that run owns the realm, at the latest: its oldest record of those that are kept."""
    records = _newest(log, lease_topic(prefix))
    return min((row["at"] / 1e6 for row in records if row["run"] == run and row["what"] != "ask"), default=now_s)


def _newest(log: Log, topic: str) -> list[dict[str, Any]]:
    """Its last `_TAIL` records."""
    first, end = log.control.bounds(topic, 0, _DEADLINE_S)
    values = log.control.read_range(topic, 0, max(first, end - _TAIL), _TAIL, _DEADLINE_S).values
    return [orjson.loads(value) for value in values if value]
