"""Dispositions that name many deliveries: proton visits each of them at once, so they are read in parts."""

from __future__ import annotations

from typing import Final

from gateway.frames.descriptors import framed
from gateway.frames.frames import DISPOSITION, Frame
from transformers.codec import Described, UInt, ULong

NAMED_MAX: Final = 1_024
"""Deliveries that a part names at most."""
_FIRST, _LAST, _IDS = 1, 2, 1 << 32  # positions in a disposition; delivery-ids are counted round


def divided(frame: object) -> bytes | None:
    """A valid disposition as two frames, of which the first names as many as may be. None: it is none, or no more."""
    if not isinstance(frame, Frame) or frame.code != DISPOSITION or frame.field(_LAST) is None:
        return None
    first, last = frame.field(_FIRST), frame.field(_LAST)
    if named_by(frame) <= NAMED_MAX:
        return None
    parts = ((first, (first + NAMED_MAX - 1) % _IDS), ((first + NAMED_MAX) % _IDS, last))
    return b"".join(_named(frame, low, high) for low, high in parts)


def named_by(frame: Frame) -> int:
    """How many deliveries a valid disposition names."""
    first, last = frame.field(_FIRST), frame.field(_LAST)
    return 1 if last is None else int(last - first) % _IDS + 1


def _named(frame: Frame, low: int, high: int) -> bytes:
    fields = [*frame.fields[:_FIRST], UInt(low), UInt(high), *frame.fields[_LAST + 1 :]]
    return framed(Described(ULong(DISPOSITION), fields), b"", frame.channel)
