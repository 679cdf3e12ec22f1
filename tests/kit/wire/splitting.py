"""What a peer says, with each message cut into transfers, and with every omission that a peer may make (AMQP 1.0
part 2, 2.7.5): what a later transfer would repeat, what is at its default, and nulls at the end of a list. Also the
message-format of the first transfer, which clients leave out though it is wanted there.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from random import Random
from typing import Any
from unittest.mock import patch

from tests.kit.wire import frames
from tests.kit.wire.conversation import Conversation
from tests.kit.wire.peer import Peer
from transformers.codec import DecodeError, UInt, decode

PARTS_MAX = 4
_REPEATED = (1, 2, 3, 6, 7)  # delivery-id, delivery-tag, message-format, rcv-settle-mode, state
_FORMAT, _SETTLED, _MORE, _RESUME, _ABORTED, _BATCHABLE = 3, 4, 5, 8, 9, 10


def split(octets: bytes, random: Random) -> bytes:
    """Every whole message in several transfers; what is no frame stays as it is."""
    chunks, position = [], 0
    if octets[:4] == b"AMQP":
        chunks, position = [octets[:8]], 8
    while len(octets) - position >= 8:
        size, doff, kind, channel = struct.unpack_from(">IBBH", octets, position)
        if size < 8 or size > len(octets) - position:
            break
        frame, position = octets[position : position + size], position + size
        chunks.append(b"".join(_parts(frame, doff * 4, channel, random)) if kind == 0 else frame)
    return b"".join(chunks) + octets[position:]


def _parts(frame: bytes, start: int, channel: int, random: Random) -> list[bytes]:
    try:
        performative, end = decode(frame, start)
    except (DecodeError, IndexError):
        return [frame]
    fields = getattr(performative, "value", None)
    if getattr(performative, "descriptor", None) != frames.TRANSFER or not isinstance(fields, list):
        return [frame]
    fields = [*fields, *[None] * 11][:11]
    if fields[_MORE] or fields[_ABORTED] or fields[_RESUME]:
        return [frame]
    payload = frame[end:]
    cuts = sorted(random.randint(0, len(payload)) for _ in range(random.randint(1, PARTS_MAX - 1)))
    pieces = [payload[low:high] for low, high in pairwise([0, *cuts, len(payload)])]
    settled = _settled(fields[_SETTLED], len(pieces), random)
    transfers = []
    for at, (piece, flag) in enumerate(zip(pieces, settled, strict=True)):
        part = [*fields]
        part[_SETTLED] = flag
        part[_MORE] = True if at < len(pieces) - 1 else random.choice([None, False])
        for field in _REPEATED:
            if at and random.random() < 0.6:
                part[field] = None
        if part[_FORMAT] == 0:
            part[_FORMAT] = random.choice([None, UInt(0)])
        for field in (_RESUME, _ABORTED, _BATCHABLE):
            part[field] = part[field] or random.choice([None, None, False])
        transfers.append(frames.frame(frames.TRANSFER, shortened(part, random), piece, channel))
    return transfers


def shortened(fields: list[Any], random: Random) -> list[Any]:
    """A list may end with its last field that is said."""
    short = [*fields]
    while short and short[-1] is None and random.random() < 0.8:
        short.pop()
    return short


def _settled(flag: bool | None, count: int, random: Random) -> list[bool | None]:
    """A delivery is settled when one of its transfers says so; what is left out behind that one says the same."""
    if not flag:
        return [random.choice([flag, None]) for _ in range(count)]
    first = random.randrange(count)
    return [None] * first + [True] + [random.choice([True, None]) for _ in range(count - first - 1)]


@contextmanager
def in_several_transfers(random: Random) -> Iterator[None]:
    """Whatever any `Conversation` or `Peer` says is cut so."""
    say, send = Conversation.say, Peer.send

    def said(self: Conversation, *pieces: bytes, cut: object = None) -> list[frames.Seen]:
        return say(self, split(b"".join(pieces), random), cut=cut)  # type: ignore[arg-type]

    def sent(self: Peer, *pieces: bytes) -> None:
        send(self, split(b"".join(pieces), random))

    with patch.object(Conversation, "say", said), patch.object(Peer, "send", sent):
        yield
