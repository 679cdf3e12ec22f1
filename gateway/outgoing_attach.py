"""What our ATTACH says that proton cannot write: the default-outcome of a source (`semantics.md` 4.1).

Pure octets. May import: `gateway.frames`, `transformers.amqp_types`.
"""

from __future__ import annotations

import struct
from typing import Any, Final

from gateway.frames import ATTACH
from transformers.amqp_types import Described, decode, encode

_HEAD: Final = struct.Struct(">IBBH")
_SOURCE, _DEFAULT_OUTCOME = 5, 8


def with_default_outcome(written: bytes, default_outcome: Any) -> bytes:
    """`written`, whole frames, with that default outcome in the source of each ATTACH."""
    frames, position = [], 0
    while position < len(written):
        size, doff, kind, channel = _HEAD.unpack_from(written, position)
        frame = written[position : position + size]
        position += size
        if size > doff * 4 and kind == 0:
            performative, _ = decode(frame, doff * 4)
            if performative.descriptor == ATTACH and performative.value[_SOURCE] is not None:
                frame = _rewritten(performative, channel, default_outcome)
        frames.append(frame)
    return b"".join(frames)


def _rewritten(attach: Described, channel: int, default_outcome: Any) -> bytes:
    source = attach.value[_SOURCE].value
    source += [None] * (_DEFAULT_OUTCOME + 1 - len(source))
    source[_DEFAULT_OUTCOME] = default_outcome
    body = encode(attach)
    return _HEAD.pack(len(body) + 8, 2, 0, channel) + body
