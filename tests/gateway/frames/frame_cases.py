"""Frames that the reader passes on in runs, and frames that it passes on alone."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from gateway.frames.endpoints import Endpoints
from gateway.frames.frame_reader import FrameReader, Piece
from gateway.frames.frames import ATTACH, BEGIN, DETACH, DISPOSITION, END, FLOW, OPEN, TRANSFER, Frame
from tests.kit.wire import frames
from transformers.codec import AmqpMap, Described, Symbol, UInt, ULong

FRAME_MAX = 4_096


MESSAGE_MAX = 3_000


HEARTBEAT = b"\x00\x00\x00\x08\x02\x00\x00\x00"


MESSAGE = frames.message()


ATTACHED = [
    frames.begin(),
    frames.attach_sender("q"),
    frames.attach_receiver("q"),
    frames.attach_sender("q", 300, "far"),
]


PLAIN = {
    "transfer": frames.transfer(70_000, MESSAGE),
    "settled": frames.transfer(70_001, MESSAGE, settled=True),
    "far-handle": frames.transfer(70_002, MESSAGE, handle=300),
    "disposition": frames.disposition(0, 9, frames.state("accepted")),
    "modified": frames.disposition(0, 9, frames.state("modified", True, None)),
    "transactional": frames.disposition(0, 9, frames.in_transaction(b"t", frames.state("accepted"))),
    "flow": frames.flow(1, 100),
    "heartbeat": HEARTBEAT,
    "extended-heartbeat": b"\x00\x00\x00\x0c\x03\x00\x00\x00abcd",
}


ALONE = {
    "state": (TRANSFER, frames.transfer(70_003, MESSAGE, state=Described(ULong(0x34), [b"t", None]))),
    "more": (TRANSFER, frames.transfer(70_004, MESSAGE, more=True)),
    "aborted": (TRANSFER, frames.aborted()),
    "rejected": (
        DISPOSITION,
        frames.disposition(0, 9, frames.state("rejected", Described(ULong(0x1D), [Symbol("a:b"), "why"]))),
    ),
    "released-of-the-sender": (DISPOSITION, frames.disposition(70_000, 70_000, frames.state("released"), sender=True)),
    "flow-with-properties": (FLOW, frames.flow(1, 1, properties=AmqpMap([(Symbol("txn-id"), b"t")]))),
    "session-flow": (FLOW, frames.frame(FLOW, [UInt(0), UInt(1), UInt(0), UInt(1)] + [None] * 6 + [AmqpMap([])])),
    "begin": (BEGIN, frames.begin(channel=1)),
    "attach": (ATTACH, frames.attach_sender("q", 7, "another")),
    "detach": (DETACH, frames.detach(0)),
    "end": (END, frames.end()),
    "long-list": (
        FLOW,
        struct.pack(">IBBH", 24, 2, 0, 0) + b"\x00\x53\x13\xd0\x00\x00\x00\x08\x00\x00\x00\x04CCCC",
    ),
}


def opened() -> Endpoints:
    """Of a connection whose OPEN has come."""
    handles = Endpoints(channel_max=5)
    assert handles.see(Frame(0, OPEN, ("peer",))) is None
    return handles


def pieces_of(chunks: list[bytes]) -> Iterator[Piece]:
    """As the tap cuts them; each session was given many deliveries."""
    handles = opened()
    tap = FrameReader(FRAME_MAX, MESSAGE_MAX, handles)
    for chunk in chunks:
        for piece in tap.walk(chunk):
            for session in handles.sessions.values():
                session.given = 100_000
            yield piece
