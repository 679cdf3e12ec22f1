"""A run of records as one blob: the lengths of the keys, of the values (uint32, little-endian; 2^32-1 is null), then
all keys, then all values. Columns, because one row of SQLite costs as much as encoding a hundred records.

May import: the standard library only.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import accumulate, pairwise

NULL = 0xFFFFFFFF


def encode(keys: Sequence[bytes | None], values: Sequence[bytes | None]) -> bytes:
    """One blob of columns of equal length."""
    lengths = [NULL if item is None else len(item) for column in (keys, values) for item in column]
    return b"".join(
        (
            struct.pack(f"<{len(lengths)}I", *lengths),
            *(item for item in keys if item is not None),
            *(item for item in values if item is not None),
        )
    )


def decode(data: bytes, count: int) -> tuple[list[bytes | None], list[bytes | None]]:
    """The keys and the values of a blob of `count` records."""
    lengths = struct.unpack_from(f"<{2 * count}I", data)
    has_null = NULL in lengths
    sizes = [0 if length == NULL else length for length in lengths] if has_null else lengths
    edges = accumulate(sizes, initial=8 * count)
    items: list[bytes | None] = [data[start:end] for start, end in pairwise(edges)]
    if has_null:
        items = [None if length == NULL else item for length, item in zip(lengths, items, strict=True)]
    return items[:count], items[count:]
