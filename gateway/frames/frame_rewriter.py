"""What our frames say that proton cannot write: the default-outcome of a source, the state of a link that sends, and as
much of an ATTACH as the peer's frames have room for.

Pure octets: whole frames in, whole frames out. Source: `semantics.md` 4.1, 4.2; AMQP 1.0 part 2, 2.7.1, 2.7.3, 2.7.4.
May import: `gateway.frames`, `transformers.amqp_types`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, Final

from gateway.frames import ATTACH, FLOW
from transformers.amqp_types import decode, encode

_HEAD: Final = struct.Struct(">IBBH")
_HANDLE, _SOURCE, _TARGET, _DEFAULT_OUTCOME = 1, 5, 6, 8
_LINK_AT: Final = 4  # in a flow

Change = Callable[[list[Any]], bool]


def changed(written: bytes, code: int, change: Change) -> bytes:
    """`written`, with what `change` does to the fields of each frame of that performative; it says whether it did."""
    frames, position = [], 0
    while position < len(written):
        size, doff, kind, channel = _HEAD.unpack_from(written, position)
        frame = written[position : position + size]
        position += size
        if size > doff * 4 and kind == 0:
            performative, _ = decode(frame, doff * 4)
            if performative.descriptor == code and change(performative.value):
                body = encode(performative)
                frame = _HEAD.pack(len(body) + _HEAD.size, 2, 0, channel) + body
        frames.append(frame)
    return b"".join(frames)


def with_link(written: bytes, link: Sequence[Any]) -> bytes:
    """The session's FLOW, as the one of a link: `link` is handle, delivery-count, link-credit, available, drain."""

    def change(fields: list[Any]) -> bool:
        fields[_LINK_AT:] = link
        return True

    return changed(written, FLOW, change)


class AttachWritten:
    """The ATTACH that has answered a peer's. `extent`: `whole`; `bare`, without its termini, where no more fits a frame
    of the peer's; `none` where not even the link's name does, so that nothing is said."""

    def __init__(self, written: bytes, default_outcome: Any, frame_size_max: int) -> None:
        """`frame_size_max` is the peer's; 0: any size."""
        self.handle: int | None = None  # ours
        self.extent = "whole"
        self._default_outcome = default_outcome
        self.octets = changed(written, ATTACH, self._complete)
        for extent in ("bare", "none"):
            if frame_size_max and _largest(self.octets) > frame_size_max:
                self.extent = extent
                self.octets = changed(self.octets, ATTACH, _strip) if extent == "bare" else b""

    def _complete(self, attach: list[Any]) -> bool:
        self.handle = attach[_HANDLE]
        if self._default_outcome is None or attach[_SOURCE] is None:
            return False
        source = attach[_SOURCE].value
        source += [None] * (_DEFAULT_OUTCOME + 1 - len(source))
        source[_DEFAULT_OUTCOME] = self._default_outcome
        return True


def _strip(attach: list[Any]) -> bool:
    attach[_SOURCE:] = [None, None, None, None, *attach[_TARGET + 3 : _TARGET + 4]]  # but for initial-delivery-count
    return True


def _largest(written: bytes) -> int:
    position = largest = 0
    while position < len(written):
        size = _HEAD.unpack_from(written, position)[0]
        position += size
        largest = max(largest, size)
    return largest
