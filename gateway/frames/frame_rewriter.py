"""What our frames say that proton cannot write: the handle-max of a BEGIN, what an ATTACH answers, as much of it as the
peer's frames have room for, and the state of a link that sends.

Pure octets: whole frames in, whole frames out. Source: `semantics.md` 4.1, 4.2; AMQP 1.0 part 2, 2.7.1 to 2.7.4.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from gateway.frames.attach_frame import AttachAnswer
from gateway.frames.frames import ATTACH, BEGIN, FLOW
from transformers.codec import Described, UInt, ULong, decode, encode

_HEAD: Final = struct.Struct(">IBBH")
_HANDLE, _ROLE, _MODES, _SOURCE, _INITIAL_COUNT = 1, 2, 3, 5, 9  # in an attach
_HANDLE_MAX_AT: Final = 4  # in a begin
_LINK_AT: Final = 4  # in a flow
_WINDOW_MAX: Final = (1 << 31) - 1

Change = Callable[[list[Any]], bool]


def changed(written: bytes, code: int, change: Change) -> bytes:
    """`written`, with what `change` does to the fields of each frame of that performative; it says whether it did."""
    frames = []
    for frame, channel, performative in _frames(written):
        if performative is not None and performative.descriptor == code and change(performative.value):
            body = encode(performative)
            frame = _HEAD.pack(len(body) + _HEAD.size, 2, 0, channel) + body
        frames.append(frame)
    return b"".join(frames)


def without(written: bytes, code: int) -> bytes:
    """`written`, but for the frames of that performative. Proton's descriptors have one octet."""
    start = bytes((0, 0x53, code))
    return b"".join(frame for frame, body, _, _ in _cut(written) if not frame.startswith(start, body))


def flow_of_receiver(channel: int, handle: int, delivery_count: int, credit: int) -> bytes:
    """A FLOW as a peer sends it whose session has room for all."""
    session = None, UInt(_WINDOW_MAX), UInt(0), UInt(_WINDOW_MAX)
    body = encode(Described(ULong(FLOW), [*session, UInt(handle), UInt(delivery_count), UInt(credit)]))
    return _HEAD.pack(len(body) + _HEAD.size, 2, 0, channel) + body


def _frames(written: bytes) -> Iterator[tuple[bytes, int, Described | None]]:
    """Each frame, its channel, and its performative; a heartbeat has none."""
    for frame, body, kind, channel in _cut(written):
        yield frame, channel, decode(frame, body)[0] if len(frame) > body and kind == 0 else None


def _cut(written: bytes) -> Iterator[tuple[bytes, int, int, int]]:
    """Each frame, where its body begins, its type, and its channel."""
    position = 0
    while position < len(written):
        size, doff, kind, channel = _HEAD.unpack_from(written, position)
        yield written[position : position + size], doff * 4, kind, channel
        position += size


def with_link(written: bytes, link: Sequence[Any]) -> bytes:
    """The session's FLOW, as the one of a link: `link` is handle, delivery-count, link-credit, available, drain."""

    def change(fields: list[Any]) -> bool:
        fields[_LINK_AT:] = link
        return True

    return changed(written, FLOW, change)


def with_handle_max(written: bytes, handle_max: int) -> bytes:
    """A BEGIN that says how many links its session may have."""

    def change(fields: list[Any]) -> bool:
        fields[_HANDLE_MAX_AT:] = [UInt(handle_max)]
        return True

    return changed(written, BEGIN, change)


class AttachRewriter:
    """The ATTACH that has answered a peer's. `extent`: `whole`; `bare`, without its termini, where no more fits a frame
    of the peer's; `none` where not even the link's name does: then no frame was written."""

    def __init__(self, written: bytes, answer: AttachAnswer, frame_size_max: int) -> None:
        """`frame_size_max` is the peer's; 0: any size."""
        self.handle: int | None = None  # ours
        self.extent = "whole"
        self._answer = answer
        self.octets = changed(written, ATTACH, self._complete)
        for extent in ("bare", "none"):
            if frame_size_max and _largest(self.octets) > frame_size_max:
                self.extent = extent
                self.octets = changed(self.octets, ATTACH, _strip) if extent == "bare" else b""

    def _complete(self, attach: list[Any]) -> bool:
        self.handle = attach[_HANDLE]
        attach[_MODES:] = self._answer.fields(sends=not attach[_ROLE])
        return True


def _strip(attach: list[Any]) -> bool:
    attach[_SOURCE:] = [None] * (_INITIAL_COUNT - _SOURCE) + attach[_INITIAL_COUNT : _INITIAL_COUNT + 1]
    return True


def _largest(written: bytes) -> int:
    position = largest = 0
    while position < len(written):
        size = _HEAD.unpack_from(written, position)[0]
        position += size
        largest = max(largest, size)
    return largest
