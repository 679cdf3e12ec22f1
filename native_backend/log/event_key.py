"""The key of an event as it is stored: how each kind begins, its fields, its marks. The one place that knows it.

| kind | key |
|---|---|
| a message that is stored as it is | `1;TRANSFORMER;RUN;SEQ;DURABLE;PRIORITY;TTL;...` and marks |
| a copy that the realm made | `2;STORE;EID;CAUSE;KEY`: KEY is the key that the event had |
| an event with headers | `3;TRANSFORMER;RUN;SEQ;DURABLE;PRIORITY;TTL` and marks, in its first header |

TTL is `T` and milliseconds, or empty. Marks are the last fields, each with a capital letter of its own that nothing
else in such keys has: `D` the time of delivery (`D+` a delay from storage) in milliseconds, `G` a digest of the
group-id, `O` a digest of the publisher's container. So one search through the joined keys of a chunk shows that there
are none. Transformers write what stands behind SEQ (`transformers.message.marks`, `transformers.message.native`): they
know no realm, and a test holds both sides together. Records: docs/records.md, *Event key*. Errors: none; what is no
such key has no such fields.
"""

from __future__ import annotations

from collections.abc import Sequence

MESSAGE, COPY, HEADED = b"1;", b"2;", b"3;"
PUBLISHED = (MESSAGE, HEADED)
RESERVED = (MESSAGE, COPY, HEADED)
"""How the key of a gateway's event begins: no other key may."""
DUE, GROUP, ORIGIN = b"D", b"G", b"O"

_TRANSFORMER_FIELD, _RUN_FIELD, _SEQ_FIELD, _TTL_FIELD = 1, 2, 3, 6
_STORE_FIELD, _EID_FIELD, _CAUSE_FIELD, _COPIED_FIELD = 1, 2, 3, 4
_MARKS_MAX = 3
_TTL = b"T"
_DELAY = b"+"
MOVED = b"moved"
"""The cause of a copy that an operator's command made."""


# -- what is published


def prefix(transformer: str, run: str, *, headed: bool) -> bytes:
    """What stands before SEQ."""
    return b"%s%s;%s;" % (HEADED if headed else MESSAGE, transformer.encode(), run.encode())


def origin_mark(digest: int) -> bytes:
    """A mark to put behind a key."""
    return b";%s%x" % (ORIGIN, digest)


def transformer_of(key: bytes) -> str:
    """The name in the key of an event with headers; empty: it is none."""
    if not key.startswith(HEADED):
        return ""
    return key.split(b";", _TRANSFORMER_FIELD + 1)[_TRANSFORMER_FIELD].decode("ascii", "replace")


def published_as(key: bytes) -> tuple[str, int] | None:
    """Run and seq of the delivery that the event, or what it is a copy of, was published with. None: it is a plain
    producer's."""
    published = original(key)
    fields = published.split(b";", _SEQ_FIELD + 1) if published.startswith(PUBLISHED) else ()
    if len(fields) <= _SEQ_FIELD or not fields[_SEQ_FIELD].isdigit():
        return None
    return fields[_RUN_FIELD].decode("ascii", "replace"), int(fields[_SEQ_FIELD])


# -- a time to live of its own


def may_expire(joined: bytes) -> bool:
    """Does one of these joined keys seem to have one?"""
    return b";" + _TTL in joined


def ttl_ms(key: bytes | None) -> int:
    """0: none. A copy has none."""
    if key is None or not key.startswith(PUBLISHED) or not may_expire(key):
        return 0
    fields = key.split(b";", _TTL_FIELD + 1)
    ttl = fields[_TTL_FIELD] if len(fields) > _TTL_FIELD else b""
    return int(ttl[1:]) if ttl[:1] == _TTL and ttl[1:].isdigit() else 0


# -- marks


def may_be_marked(joined: bytes) -> bool:
    """Does one of these joined keys seem to have a mark? Nearly never."""
    return DUE in joined or GROUP in joined or ORIGIN in joined


def may_be_due(joined: bytes) -> bool:
    return b";" + DUE in joined


def may_have_times(joined: bytes) -> bool:
    """Does one of these joined keys seem to have a time to live or a time of delivery?"""
    return _TTL in joined or DUE in joined  # one letter is found sooner than two


def may_be_delayed(joined: bytes) -> bool:
    """Is the time of delivery of one of them counted from when it was stored?"""
    return b";" + DUE + _DELAY in joined


def marks_of(key: bytes | None) -> Sequence[tuple[bytes, bytes]]:
    """Letter and value of each last field that may be a mark. A copy has none: it was due before."""
    if key is None or not key.startswith(PUBLISHED):
        return ()
    return [(field[:1], field[1:]) for field in key.rsplit(b";", _MARKS_MAX)[1:]]


def due(value: bytes) -> tuple[int, bool] | None:
    """Of a mark DUE: milliseconds, and whether they count from when the event was stored. None: it is no time."""
    return (int(value), value.startswith(_DELAY)) if value.lstrip(_DELAY).isdigit() else None


def digest_of(value: bytes) -> int | None:
    """Of a mark GROUP or ORIGIN. None: it is no digest."""
    try:
        return int(value, 16)
    except ValueError:
        return None


# -- copies


def copy_of(store: int, eid: int, cause: str, key: bytes) -> bytes:
    """Where a copy comes from and why, then the key that the event had when it was published."""
    return b"%s%d;%d;%s;%s" % (COPY, store, eid, cause.encode(), original(key))


def original(key: bytes) -> bytes:
    """The key that an event had when it was published."""
    fields = key.split(b";", _COPIED_FIELD) if key.startswith(COPY) else ()
    return fields[_COPIED_FIELD] if len(fields) > _COPIED_FIELD else bytes(key)


def copy_cause(key: bytes) -> bytes | None:
    """Why there is this copy; None: it is none."""
    fields = key.split(b";", _COPIED_FIELD) if key.startswith(COPY) else ()
    return fields[_CAUSE_FIELD] if len(fields) > _COPIED_FIELD else None


def copied_from(key: bytes) -> tuple[int, int] | None:
    """Store and EID of the event that this is a copy of; None: it is none."""
    fields = key.split(b";", _COPIED_FIELD) if key.startswith(COPY) else ()
    if len(fields) <= _COPIED_FIELD or not (fields[_STORE_FIELD].isdigit() and fields[_EID_FIELD].isdigit()):
        return None
    return int(fields[_STORE_FIELD]), int(fields[_EID_FIELD])


def copies_of(store: int, eid: int) -> bytes:
    """How the key of each copy of an event begins."""
    return b"%s%d;%d;" % (COPY, store, eid)
