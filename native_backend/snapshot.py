"""Snapshots of acknowledgement states: the compacted topic `<prefix>.state`.

A snapshot is the state as of journal offset `journal`, so any of them is right together with the journal from there
on; a newer one only makes recovery shorter. `closed` 0: a process had the durable open when this was written, so that
events at or above `position` may have been given to a link since. Records: docs/records.md "State snapshot".
May import: the standard library, orjson, `native_backend` below it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson

from native_backend.acknowledgement import Acknowledgement


@dataclass(slots=True)
class Recovered:
    """A state as a snapshot and the journal tell it."""

    state: Acknowledgement
    journal: int  # the first journal offset that is not in it
    closed: bool


def state_topic(prefix: str) -> str:
    return f"{prefix}.state"


def snapshot_key(store: int, durable: str) -> bytes:
    return orjson.dumps([store, durable])


def encode_snapshot(node: str, durable: str, store: int, state: Acknowledgement, journal: int, closed: bool) -> bytes:
    return orjson.dumps(
        {
            "v": 1,
            "node": node,
            "durable": durable,
            "store": store,
            "journal": journal,
            "low": state.low,
            "acked": [*state.acked],
            "failed": [*state.failed.items()],
            "position": state.position,
            "closed": int(closed),
        }
    )


def decode_snapshot(record: dict[str, Any]) -> Recovered:
    state = Acknowledgement(record["low"], record["position"])
    for first, last in record["acked"]:
        state.acked.add(first, last)
    state.failed = dict(record["failed"])
    return Recovered(state, record["journal"], bool(record.get("closed", 0)))
