"""When events expire: their record's time plus their own time to live, or else their node's.

An event with a time to live of its own shows it by a letter T in its key, which no other key of a gateway has: so one
search through the joined keys of a chunk tells that nothing in it can expire, and nothing is paid for that otherwise.
A copy (a dead letter, say) has only its node's. Times in milliseconds since 1970.
Source: seed 001 section 3.2.1, E-1 to E-3. May import: the standard library.
"""

from __future__ import annotations

from collections.abc import Sequence

NEVER = 2**62
_PUBLISHED = (b"1;", b"3;")
_OWN = b";T"
_TTL_FIELD = 6


def may_expire(keys: Sequence[bytes | None]) -> bool:
    """Does any of these events seem to have a time to live of its own?"""
    return _OWN in b"".join(filter(None, keys))


def expiries(times_ms: list[int], keys: Sequence[bytes | None], node_ttl_ms: int) -> list[int] | None:
    """When each event expires (NEVER: it does not); None when none does."""
    own = may_expire(keys)
    if not own:
        return [at + node_ttl_ms for at in times_ms] if node_ttl_ms else None
    return [
        at + ttl if (ttl := own_ttl_ms(key) or node_ttl_ms) else NEVER for at, key in zip(times_ms, keys, strict=True)
    ]


def own_ttl_ms(key: bytes | None) -> int:
    """0: none."""
    if key is None or not key.startswith(_PUBLISHED) or _OWN not in key:
        return 0
    fields = key.split(b";", _TTL_FIELD + 1)
    ttl = fields[_TTL_FIELD] if len(fields) > _TTL_FIELD else b""
    return int(ttl[1:]) if ttl[:1] == b"T" and ttl[1:].isdigit() else 0


def stretch(expiries_ms: list[int], begin: int, end: int, now_ms: int) -> tuple[int, bool]:
    """The first part of [begin, end) that is all alive or all expired: where it ends, and whether it lives."""
    lives = expiries_ms[begin] > now_ms
    at = begin + 1
    while at < end and (expiries_ms[at] > now_ms) is lives:
        at += 1
    return at, lives
