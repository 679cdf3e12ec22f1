"""When events expire: their record's time plus their own time to live, or else their node's.

Most chunks have no event with a time to live of its own: one search through their joined keys shows that. A copy (a
dead letter, say) has only its node's. Times in milliseconds since 1970. The key's format:
`native_backend.log.event_key`. Source: seed 001 section 3.2.1, E-1 to E-3.
"""

from __future__ import annotations

from collections.abc import Sequence

from native_backend.log import event_key

NEVER = 2**62


def may_expire(keys: Sequence[bytes | None]) -> bool:
    """Does any of these events seem to have a time to live of its own?"""
    return event_key.may_expire(b"".join(filter(None, keys)))


def expiries(times_ms: list[int], keys: Sequence[bytes | None], node_ttl_ms: int) -> list[int] | None:
    """When each event expires (NEVER: it does not); None when none does."""
    own = may_expire(keys)
    if not own:
        return [at + node_ttl_ms for at in times_ms] if node_ttl_ms else None
    return [
        at + ttl_ms if (ttl_ms := event_key.ttl_ms(key) or node_ttl_ms) else NEVER
        for at, key in zip(times_ms, keys, strict=True)
    ]


def stretch(expiries_ms: list[int], begin: int, end: int, now_ms: int) -> tuple[int, bool]:
    """The first part of [begin, end) that is all alive or all expired: where it ends, and whether it lives."""
    lives = expiries_ms[begin] > now_ms
    at = begin + 1
    while at < end and (expiries_ms[at] > now_ms) is lives:
        at += 1
    return at, lives
