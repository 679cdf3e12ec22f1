"""The group offset of a queue or durable: so far below the end of its store that its lag is the number of messages.

Its metadata says the mark below which all has ended, and the journal offset that both were computed at.

Who wants the mark reads the metadata. Records: docs/records.md "Group offset".
"""

from __future__ import annotations

from zlib import crc32

Position = tuple[int, str]


def projection(offset: int, low: int, journal: int) -> Position:
    """Offset and metadata text."""
    return offset, f"realmgate2;{journal};{low};{crc32(f'{offset};{journal};{low}'.encode()):08x}"


def parse_projection(position: Position) -> int | None:
    """The journal offset named by a group offset of ours; None for a foreign commit."""
    fields = _fields(position)
    return fields[0] if fields is not None else None


def low_of(position: Position) -> int:
    """The mark that a group offset tells of; of a foreign commit, the offset itself."""
    fields = _fields(position)
    return fields[1] if fields is not None else position[0]


def _fields(position: Position) -> tuple[int, int] | None:
    """Journal offset and mark. Of an earlier release the offset is the mark."""
    offset, text = position
    version, *fields = text.rstrip("\0").split(";")
    if version not in ("realmgate1", "realmgate2") or not all(field.isdigit() for field in fields[:-1]):
        return None
    numbers = [int(field) for field in fields[:-1]]
    if (
        len(numbers) != int(version[-1])
        or fields[-1] != f"{crc32(';'.join(map(str, (offset, *numbers))).encode()):08x}"
    ):
        return None
    return numbers[0], numbers[-1] if version == "realmgate2" else offset
