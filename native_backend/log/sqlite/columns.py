"""A run of records as one blob: the lengths of the keys, of the values (uint32, little-endian; 2^32-1 is null), then
all keys, then all values. Columns, because one row of SQLite costs as much as encoding a hundred records.

Where a record of the run has headers, they follow, record by record: how many (uint32), then for each the lengths of
name and value (uint32, null as above), the name in UTF-8 and the value. Other runs end with the values.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import accumulate, pairwise

from native_backend.log.record_headers import HeadedKey, headed

NULL = 0xFFFFFFFF
_COUNT, _LENGTHS = struct.Struct("<I"), struct.Struct("<II")


def encode(keys: Sequence[bytes | None], values: Sequence[bytes | None]) -> bytes:
    """One blob of columns of equal length."""
    tail = b""
    if HeadedKey in map(type, keys):
        tail = b"".join(map(_headers, keys))
        keys = [key.record_key if type(key) is HeadedKey else key for key in keys]
    lengths = [NULL if item is None else len(item) for column in (keys, values) for item in column]
    return b"".join(
        (
            struct.pack(f"<{len(lengths)}I", *lengths),
            *(item for item in keys if item is not None),
            *(item for item in values if item is not None),
            tail,
        )
    )


def _headers(key: bytes | None) -> bytes:
    headers = key.headers if type(key) is HeadedKey else ()
    parts = [_COUNT.pack(len(headers))]
    for name, value in headers:
        octets = name.encode()
        parts += (_LENGTHS.pack(len(octets), NULL if value is None else len(value)), octets, value or b"")
    return b"".join(parts)


def decode(data: bytes, count: int) -> tuple[list[bytes | None], list[bytes | None]]:
    """The keys and the values of a blob of `count` records."""
    lengths = struct.unpack_from(f"<{2 * count}I", data)
    has_null = NULL in lengths
    sizes = [0 if length == NULL else length for length in lengths] if has_null else lengths
    end = 8 * count + sum(sizes)
    edges = accumulate(sizes, initial=8 * count)
    items: list[bytes | None] = [data[start:end] for start, end in pairwise(edges)]
    if has_null:
        items = [None if length == NULL else item for length, item in zip(lengths, items, strict=True)]
    keys, values = items[:count], items[count:]
    return (keys if end == len(data) else _headed(keys, data, end)), values


def _headed(keys: list[bytes | None], data: bytes, at: int) -> list[bytes | None]:
    """The keys with what stands at `at`."""
    headed_keys = []
    for key in keys:
        (count,) = _COUNT.unpack_from(data, at)
        at += _COUNT.size
        headers: list[tuple[str, bytes | None]] = []
        for _ in range(count):
            name, value = _LENGTHS.unpack_from(data, at)
            start = at + _LENGTHS.size + name
            at = start + (0 if value == NULL else value)
            headers.append((data[start - name : start].decode(), None if value == NULL else data[start:at]))
        headed_keys.append(headed(key, headers))
    return headed_keys
