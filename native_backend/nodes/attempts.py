"""How often an event may fail."""

from __future__ import annotations


def last_attempts(limit: int, failed: dict[int, int], eids: list[int]) -> list[bool] | None:
    """Of which events one more failed attempt would be the last of `limit` (0: there is none); None: of none. `failed`:
    attempts so far, of events that have any."""
    if not limit or (not failed and limit > 1):
        return None
    ends = [failed.get(eid, 0) + 1 >= limit for eid in eids]
    return ends if any(ends) else None
