"""The tap: cuts a stream of AMQP bytes into frames before the engine sees them.

Runs of plain transfers, dispositions, flows and empty frames are handed on together; a long run of whole messages on
one link is a `Run`, its payloads apart from its frames, and so is what is posted in one transaction behind the first of
it; every other frame is alone and decoded, because proton's
reading of it loses fields (default-outcome, link capabilities, flow properties, `more` of a transfer that arrives with
its continuation: `semantics.md` 4.1, 4.4). A plain transfer has neither `more` nor a state nor `aborted`, nor a
delivery-tag of more than 32 octets. A frame that no engine should see is a `Fault`.

Pure bytes: no proton, no clock. May import: `gateway.frames`, `gateway.handles`, `gateway.symbolic`,
`gateway.tap_runs`, `transformers.amqp_types`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from gateway import tap_runs
from gateway.frames import CLOSE, DETACH, END, OPEN, TRANSFER, Fault, Frame
from gateway.handles import Handles, unattached
from gateway.symbolic import framed, numeric
from transformers.amqp_types import DecodeError, Described, UInt, ULong, decode

HEADER_SIZE: Final = 8
_HEAD = struct.Struct(">IHHIHH").unpack_from  # size; doff, type; channel; 00 53 code list; size, count; x x
_SHORT = struct.Struct(">IHH").unpack_from

# The first 32 bits of a performative with a one-octet descriptor and a list8: 00 53 code c0.
_TRANSFER8: Final = 0x005314C0
_DISPOSITION8: Final = 0x005315C0
_FLOW8: Final = 0x005313C0

_HEAD_SIZE: Final = 16
_NULL: Final = 0x40
_TRUE: Final = 0x41
_FALSE: Final = 0x42
_PLAIN_KIND: Final = 0x0200  # data offset 2, an AMQP frame
_UINT: Final = 0x70  # four octets long: two tell nothing
_ID = struct.Struct(">I").unpack_from
_ALL: Final = 0xFFFFFFFF
_ROLE_END: Final = 15  # in a frame with a disposition
_NO_LINK: Final = (-1, -1)
_BRIEF: Final = 38  # octets; a disposition that names its state by a symbol takes 40 at least
_FLOW_HANDLE: Final = 4  # its position in a flow
_MORE: Final = 5  # its position in a transfer
_TAG_BYTES_MAX: Final = 32
# Size and count of a transfer's list with nothing from `more` on; a longer tag has no room in less than 38 octets.
_BRIEF_LISTS: Final = frozenset(size << 8 | count for size in range(38) for count in range(_MORE + 1))
_FLOW_PLAIN_FIELDS: Final = 9  # echo and properties come behind; a drain is looked at, too
_WIDTHS: Final = {0x40: 0, 0x41: 0, 0x42: 0, 0x43: 0, 0x44: 0, 0x45: 0, 0x50: 1, 0x52: 1, 0x53: 1, 0x56: 1, 0x70: 4}

_HEARD_ALWAYS: Final = (OPEN, END, CLOSE)
_TAG, _SETTLE_MODE, _STATE, _RESUME, _ABORTED = 2, 6, 7, 8, 9  # positions in a transfer
_TRANSACTIONAL: Final = 0x34
_FRAME_SIZE_AT: Final = 2  # in an open
_FRAME_SIZE_MIN: Final = 512
_SMALL_UINT: Final = 0x52
_UINT0: Final = 0x43
_SMALL_ULONG: Final = 0x53

Octets = bytes | memoryview


class Run(NamedTuple):
    """Whole messages on one link: where each payload is in `stream`, as `tap_runs.c` says; their frames are pushed."""

    stream: Octets
    places: bytes
    transaction: bytes | None = None


Piece = tuple[Octets, int, int, Frame | Fault | Run | None]


class Tap:
    """Feeds on chunks of one connection's stream, from behind the protocol header on."""

    def __init__(self, frame_size_max: int, message_size_max: int, handles: Handles) -> None:
        self._frame_size_max = frame_size_max
        self._message_size_max = message_size_max
        self._handles = handles
        self._unfinished: set[tuple[int, object]] = set()  # (channel, handle) with a message that is here in part
        self._rest = b""

    def walk(self, data: bytes | memoryview) -> Iterator[Piece]:
        """The pieces to push: (octets, start, end, None) for a plain run, (octets, start, end, Frame) for a frame to
        be pushed alone, (octets, start, end, Run) for messages without payloads, (octets, start, start, Fault) for a
        frame that is not pushed, and for the end of it all. What is left of an unfinished frame waits for the next
        chunk, and is all that is copied."""
        octets = memoryview(data)
        if self._rest:
            cut = self._missing(octets)
            whole = memoryview(self._rest + octets[:cut])
            self._rest, octets = b"", octets[cut:]
            yield from self._pieces(whole)
        if octets:
            yield from self._pieces(octets)

    def _missing(self, octets: memoryview) -> int:
        """How much of them belongs to the unfinished frame; all, where its size cannot be told or is not allowed."""
        rest = self._rest
        size = int.from_bytes(rest[:4] + octets[: max(0, 4 - len(rest))])
        if len(rest) + len(octets) < 4 or not HEADER_SIZE <= size <= self._frame_size_max:
            return len(octets)
        return max(0, size - len(rest))

    def _pieces(self, data: Octets) -> Iterator[Piece]:
        end = len(data)
        start = position = 0  # start: of the plain run that is growing
        link_channel, link_first = _NO_LINK  # of the transfer before, whose link is known to be there
        posted: tuple[int, bytes] | None = None  # where the last frame is that stood alone, if more like it may follow
        stated, stated_channel = -1, 0  # the highest delivery-id that a disposition spoke of, and where
        frame_size_max, discards = self._frame_size_max, self._handles.discards
        while end - position >= HEADER_SIZE:
            if end - position >= _HEAD_SIZE:
                size, kind, channel, head, counts, first = _HEAD(data, position)
            else:
                (size, kind, channel), head, counts, first = _SHORT(data, position), 0, 0, 0
            if kind == _PLAIN_KIND and position + size <= end and _HEAD_SIZE <= size <= frame_size_max:
                # What nearly every frame is, told from the rest first; in full further down.
                if head == _TRANSFER8 and first == link_first and channel == link_channel and counts in _BRIEF_LISTS:
                    position += size
                    continue
                if head == _DISPOSITION8 and first >> 8 == _TRUE and (size <= _BRIEF or _numeric(data, position, size)):
                    low, high = _ids(data, position + _ROLE_END)
                    if low <= stated and position > start:  # of two states of one delivery in a push it sees one
                        yield data, start, position, None
                        start = position
                    stated = high if channel == stated_channel or stated < 0 else _ALL
                    stated_channel = channel
                    link_channel, link_first = _NO_LINK
                    position, stated = tap_runs.told(data, position + size, channel, stated)
                    continue
            if not HEADER_SIZE <= size <= frame_size_max or kind & 0xFF or not 2 <= kind >> 8 <= size >> 2:
                if position > start:
                    yield data, start, position, None
                yield data, position, position, Fault("framing", f"frame of size {size}, head {kind:#06x}")
                return
            if position + size > end:
                break
            if discards and channel in discards and self._is_unheard(data, position, size, kind, channel):
                if position > start:
                    yield data, start, position, None
                start = position = position + size
                continue
            alone: Frame | Fault | None = None
            run: tuple[int, bytes, Run] | None = None
            if size < _HEAD_SIZE or not _is_plain(data, position, size, kind, head, counts, first):
                if posted is not None and head == _TRANSFER8:
                    run = self._run(data, position, *posted)
                if run is None and size != (kind >> 8) * 4:  # an empty frame is a heartbeat
                    alone = self._alone(data, position, size, kind, channel)
                    posted = _posted(alone, position)
            elif head == _FLOW8 or (head == _TRANSFER8 and (channel, first) != (link_channel, link_first)):
                alone = self._unattached(data, position, head, channel)
                is_one_octet = head == _TRANSFER8 and first >> 8 != _UINT
                link_channel, link_first = (channel, first) if is_one_octet else _NO_LINK
                if is_one_octet and alone is None and self._is_new(channel, first):
                    run = self._run(data, position)
            if (run is not None or alone is not None) and position > start:
                yield data, start, position, None
            if run is not None:
                start = position = run[0]
                yield run[1], 0, len(run[1]), run[2]
                continue
            if alone is not None:
                start = position + size
                link_channel, link_first = _NO_LINK
                yield _as_read(data, position, start, alone)
                if isinstance(alone, Fault) and alone.channel is None:
                    return
            position += size
        if position > start:
            yield data, start, position, None
        self._rest = bytes(data[position:])

    def _run(
        self, data: Octets, position: int, like: int = -1, transaction: bytes | None = None
    ) -> tuple[int, bytes, Run] | None:
        """Where it ends, its frames, and it. `like`: of what is posted, where the first of that transaction is."""
        found = tap_runs.cut(data, position, self._frame_size_max, self._message_size_max, like)
        return None if found is None else (found[0], found[1], Run(data, found[2], transaction))

    def _is_unheard(self, data: Octets, position: int, size: int, kind: int, channel: int) -> bool:
        """We have ended that session: of what the peer sent before it knew, nothing counts but its END."""
        start = (kind >> 8) * 4
        at = position + start
        if size > start + 2 and data[at] == 0 and data[at + 1] == _SMALL_ULONG and data[at + 2] not in _HEARD_ALWAYS:
            return True  # what nearly all are; to decode them took 0.1 ms each, and megabytes may be on their way
        frame = _decode(data, at, position + size, channel) if size > start else None
        return frame is not None and not (isinstance(frame, Frame) and frame.code in _HEARD_ALWAYS)

    def _alone(self, data: Octets, position: int, size: int, kind: int, channel: int) -> Frame | Fault:
        frame = _decode(data, position + (kind >> 8) * 4, position + size, channel)
        if isinstance(frame, Fault):
            return frame
        fault = self._handles.see(frame)
        if fault is None:
            self._follow(frame)
        return fault or frame

    def _follow(self, frame: Frame) -> None:
        """Which links are in the middle of a message."""
        channel, code = frame.channel, frame.code
        if code == TRANSFER and frame.field(_MORE) and not frame.field(_ABORTED):
            self._unfinished.add((channel, frame.field(0)))
        elif code in (TRANSFER, DETACH):
            self._unfinished.discard((channel, frame.field(0)))
        elif code == END:
            self._unfinished = {each for each in self._unfinished if each[0] != channel}

    def _is_new(self, channel: int, first: int) -> bool:
        """A plain transfer with these first octets is a message of its own, not the end of one."""
        if not self._unfinished:
            return True
        code, handle = first >> 8, first & 0xFF
        key = (channel, 0 if code == _UINT0 else handle)
        if code not in (_UINT0, _SMALL_UINT) or key not in self._unfinished:
            return code in (_UINT0, _SMALL_UINT)
        self._unfinished.discard(key)
        return False

    def _unattached(self, data: Octets, position: int, head: int, channel: int) -> Fault | None:
        """What is wrong with the handle of a plain transfer or flow; what is too odd to tell is the engine's."""
        position += _HEAD_SIZE - 2
        if head == _FLOW8:
            for _ in range(_FLOW_HANDLE):
                position += 1 + _WIDTHS.get(data[position], len(data))
                if position >= len(data):
                    return None
        if data[position] == _NULL:
            return None if head == _FLOW8 else Fault("malformed-performative", "a transfer without a handle")
        width = _WIDTHS.get(data[position])
        if width is None or position + width >= len(data):
            return None
        handle = int.from_bytes(data[position + 1 : position + 1 + width])
        if head != _FLOW8:
            return self._handles.transferred(channel, handle)
        return None if self._handles.attached(channel, handle) else unattached(channel, handle)


def _as_read(data: Octets, start: int, end: int, alone: Frame | Fault) -> Piece:
    """A frame as an engine understands it, or that it is to see nothing of it."""
    if isinstance(alone, Fault):
        return data, start, start, alone
    return (data, start, end, alone) if alone.octets is None else (alone.octets, 0, len(alone.octets), alone)


def _posted(alone: Frame | Fault, position: int) -> tuple[int, bytes] | None:
    """Where a whole message is posted, and in which transaction, if nothing else is said of it."""
    if not isinstance(alone, Frame) or alone.code != TRANSFER or alone.octets is not None:
        return None
    tag, state = alone.field(_TAG), alone.field(_STATE)
    said = state.value if type(state) is Described and state.descriptor == _TRANSACTIONAL else None
    if type(said) is not list or not said or type(said[0]) is not bytes or said[1:] not in ([], [None]):
        return None
    if alone.field(_SETTLE_MODE) is not None or (type(tag) is bytes and len(tag) > _TAG_BYTES_MAX):
        return None
    is_whole = all(alone.field(at) is None or alone.field(at) is False for at in (_MORE, _RESUME, _ABORTED))
    return (position, said[0]) if is_whole else None


def _ids(data: Octets, position: int) -> tuple[int, int]:
    """`first` and `last` of a disposition, from behind its role on; (0, ALL) where they are too odd to tell."""
    low = high = -1
    try:
        for _ in range(2):
            code = data[position]
            if code == 0x52:
                low, high, position = high, data[position + 1], position + 2
            elif code == _UINT:
                low, high, position = high, _ID(data, position + 1)[0], position + 5
            elif code == 0x43:
                low, high, position = high, 0, position + 1
            elif code == _NULL and high >= 0:
                low = high
            else:
                return 0, _ALL
    except (IndexError, struct.error):  # it ends before they do
        return 0, _ALL
    return low, high


def _is_plain(data: Octets, position: int, size: int, kind: int, head: int, counts: int, first: int) -> bool:
    if kind >> 8 != 2:
        return False
    fields = counts & 0xFF
    if head == _TRANSFER8:
        return counts in _BRIEF_LISTS or _is_plain_transfer(data, position + 14, fields)
    if head == _DISPOSITION8:
        # A receiver's; a sender's may look like a transfer to the engine, and a state may have a name for a number.
        return first >> 8 == _TRUE and (size <= _BRIEF or _numeric(data, position, size))
    if head != _FLOW8 or fields > _FLOW_PLAIN_FIELDS:
        return False
    return fields < _FLOW_PLAIN_FIELDS or not _drains(data, position, size, counts)


def _drains(data: Octets, position: int, size: int, counts: int) -> bool:
    """The last field of a flow, `drain`, is not false; or it is not where it should be."""
    at = 12 + (counts >> 8)
    return at >= size or data[position + at] not in (_NULL, _FALSE)


def _numeric(data: Octets, position: int, size: int) -> bool:
    """No descriptor in it is a symbol, or looks like one."""
    octets = bytes(data[position : position + size])
    return b"\x00\xa3" not in octets and b"\x00\xb3" not in octets


def _is_plain_transfer(data: Octets, position: int, fields: int) -> bool:
    """False where anything but null or false stands in `more` or behind it, where the tag is too long, or where a field
    is too odd to tell."""
    end = len(data) - 2
    for index in range(fields):
        if position > end:
            return False
        code = data[position]
        if index >= _MORE and code not in (0x40, 0x42):
            return False
        if code == 0xA0:
            if data[position + 1] > _TAG_BYTES_MAX:
                return False
            position += 2 + data[position + 1]
        elif code in _WIDTHS:
            position += 1 + _WIDTHS[code]
        else:
            return False
    return True


def _decode(data: Octets, start: int, end: int, channel: int) -> Frame | Fault:
    body = bytes(data[start:end])
    try:
        value, payload = decode(body)
    except DecodeError as error:
        return Fault("malformed-performative", str(error))
    changed = _understood(value) if isinstance(value, Described) else None
    if changed is not None:
        value = changed
    if not isinstance(value, Described) or not isinstance(value.descriptor, int):
        return Fault("unknown-performative", f"a frame body that is no performative: {str(value)[:60]}")
    if not OPEN <= value.descriptor <= CLOSE:
        return Fault("unknown-performative", f"descriptor 0x{value.descriptor:x}")
    if not isinstance(value.value, list):
        return Fault("malformed-performative", f"performative 0x{value.descriptor:x} is no list")
    octets = None if changed is None else framed(changed, body[payload:], channel)
    return Frame(channel, value.descriptor, tuple(value.value), octets)


def _understood(value: Described) -> Described | None:
    """As proton reads it, where that is not how it came: numbers for names; and for a max-frame-size that is less than
    the least there is, that one, which every peer takes (2.7.1). Proton would do so, too, and remark on stderr."""
    numbered = numeric(value)
    said = value if numbered is None else numbered
    fields = said.value
    if said.descriptor != OPEN or not isinstance(fields, list) or len(fields) <= _FRAME_SIZE_AT:
        return numbered
    size = fields[_FRAME_SIZE_AT]
    if not isinstance(size, UInt) or size >= _FRAME_SIZE_MIN:
        return numbered
    return Described(ULong(OPEN), [*fields[:_FRAME_SIZE_AT], UInt(_FRAME_SIZE_MIN), *fields[_FRAME_SIZE_AT + 1 :]])
