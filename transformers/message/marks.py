"""What a message asks of its delivery beyond its header: not before a time, and all of its group to one consumer.

Said natively as *marks*, the last fields of its key (docs/records.md, *Event key*): `;D` and the time in milliseconds
since 1970, or `;D+` and a delay in milliseconds; `;G` and a digest of the group-id. Most messages have none, and what
they pay is a look at one octet of their properties. Annotations of other types than the convention has are ignored
(B-6). Source: the annotations `x-opt-delivery-time` and `x-opt-delivery-delay` of AMQP JMS mapping; seed 001 3.2.4
(group-id). Errors: none.
"""

from __future__ import annotations

import functools
from zlib import crc32

from transformers.codec import AmqpMap, DecodeError, Described, decode
from transformers.message.routing import group_within
from transformers.message.sections import MESSAGE_ANNOTATIONS, PROPERTIES, Offsets

_TIME, _DELAY = "x-opt-delivery-time", "x-opt-delivery-delay"
_ASKED = b"x-opt-delivery-"
_MS_MAX = 10**15
_BEFORE_GROUP = 10  # fields of properties that end before the group-id
_SHORT_LIST = b"\x00\x53\x73\xc0"


def marks(message: bytes, offsets: Offsets) -> bytes:
    """The fields to put behind the others; empty: none."""
    suffix = b""
    begin = offsets[MESSAGE_ANNOTATIONS]
    if begin >= 0:
        end = min(offset for offset in offsets[PROPERTIES:] if offset >= 0)
        section = message[begin:end]
        if _ASKED in section:
            suffix = _delay(section)
    begin = offsets[PROPERTIES]
    if begin >= 0 and (message[begin : begin + 4] != _SHORT_LIST or message[begin + 5] > _BEFORE_GROUP):
        group = group_within(message, begin)
        if group is not None:
            suffix += b";G%x" % crc32(group.encode())
    return suffix


@functools.lru_cache(maxsize=256)  # what is sent together often asks for the same
def _delay(section: bytes) -> bytes:
    try:
        decoded, _ = decode(section)
    except DecodeError:
        return b""
    pairs = decoded.value.pairs if isinstance(decoded, Described) and isinstance(decoded.value, AmqpMap) else []
    annotations = {str(key): value for key, value in pairs if isinstance(key, str)}
    for name, sign in ((_TIME, b""), (_DELAY, b"+")):
        value = annotations.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= _MS_MAX:
            return b";D%s%d" % (sign, value)
    return b""
