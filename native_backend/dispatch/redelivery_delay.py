"""A failed attempt on a node that delays redelivery: each event of the settlement rests as long as its own attempts
say.

Times in milliseconds since 1970.
"""

from __future__ import annotations

from dataclasses import replace

from native_backend.journal.settlement import Settlement
from native_backend.nodes.properties import Properties
from native_backend.state.ack_state import Run
from native_backend.state.delayed import delay_ms


def with_redelivery_delay(
    settlement: Settlement, properties: Properties, failed: dict[int, int], now_ms: int
) -> list[Settlement]:
    """The settlement in parts of equal times: one, unless its events have failed differently often. `failed`: attempts
    before this one, of events that have any."""
    if not failed or properties.redelivery == "constant":
        settlement.not_before_ms = now_ms + delay_ms(properties, 1)
        return [settlement]
    parts: dict[int, list[Run]] = {}
    for first, last, seq, cover in settlement.runs:
        for eid in range(first, last + 1):
            runs = parts.setdefault(failed.get(eid, 0) + 1, [])
            if runs and runs[-1][1] == eid - 1 and eid > first:
                runs[-1] = (runs[-1][0], eid, runs[-1][2], runs[-1][3])
            else:
                runs.append((eid, eid, seq + eid - first, cover if eid == first else eid))
    return [
        replace(
            settlement,
            runs=runs,
            count=sum(last - first + 1 for first, last, _, _ in runs),
            not_before_ms=now_ms + delay_ms(properties, attempts),
        )
        for attempts, runs in parts.items()
    ]
