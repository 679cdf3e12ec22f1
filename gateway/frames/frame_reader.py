"""The tap: cuts a stream of AMQP bytes into frames before the engine sees them, and checks every one.

Runs of plain transfers, dispositions, flows and empty frames are handed on together; a long run of whole messages on
one link is a `TransferRun`, its payloads apart from its frames, and so is what is posted in one transaction behind the
first of it. Those are checked as they are (`gateway.frames.plain_frames`); every other frame is alone and decoded,
because it may be invalid (`gateway.frames.field_faults`), and because proton's reading of it loses fields
(default-outcome, link capabilities, flow properties, `more` of a transfer that arrives with its continuation:
`semantics.md` 4.1, 4.4). A plain transfer has neither `more` nor a state nor `aborted`, and a delivery-tag of at most
32 octets; a plain frame has no extended header. A frame that no engine should see is a `Fault`; where it ends its
session, nothing more is read of that but its END.

Pure bytes: no proton, no clock.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import replace
from typing import Final, NamedTuple

from gateway.frames import plain_frames
from gateway.frames.descriptors import framed, numeric
from gateway.frames.endpoints import Endpoints, Session
from gateway.frames.field_faults import checked
from gateway.frames.frames import CLOSE, DISPOSITION, END, FLOW, OPEN, TRANSFER, Fault, Frame
from gateway.frames.multi_transfer import MORE, MultiTransfer, Part, is_last
from gateway.frames.stated_in_transactions import Spoken, Stated
from gateway.frames.wide_dispositions import NAMED_MAX, divided, named_by
from transformers.codec import DecodeError, Described, UInt, ULong, decode

HEADER_SIZE: Final = 8
_HEAD = struct.Struct(">IHHI").unpack_from  # size; doff, type; channel; 00 53 code list
_HEAD_SIZE: Final = 12
_SHORT = struct.Struct(">IHH").unpack_from

# The first 32 bits of a performative with a one-octet descriptor and a list8: 00 53 code c0.
_TRANSFER8: Final = 0x005314C0
_DISPOSITION8: Final = 0x005315C0
_FLOW8: Final = 0x005313C0

_PLAIN_KIND: Final = 0x0200  # data offset 2, an AMQP frame
_HANDLE_AT: Final = 14  # of such a transfer: its first field
_UINT0: Final = b"\x43"
_UINT_WIDTHS: Final = {b"\x52": 1, b"\x70": 4}
_TAG_BYTES_MAX: Final = 32

_HEARD_ALWAYS: Final = (OPEN, END, CLOSE)
_HANDLE, _TAG, _SETTLED, _SETTLE_MODE, _STATE, _RESUME, _ABORTED = 0, 2, 4, 6, 7, 8, 9  # positions in a transfer
_TRANSACTIONAL: Final = 0x34
_FRAME_SIZE_AT: Final = 2  # in an open
_FRAME_SIZE_MIN: Final = 512
_SMALL_ULONG: Final = 0x53

# What a frame that stands alone costs, of the `effort` of a walk: one about a link, a session or the connection some
# 0.3 ms with all that it leads to; one about deliveries an eighth of it, one that changes credit and wants an answer
# three eighths.
_EFFORT, _EFFORT_OF_DELIVERIES, _EFFORT_OF_FLOW = 8, 1, 3
_OF_DELIVERIES: Final = (TRANSFER, DISPOSITION)
_PLAIN_BYTES: Final = 2_048
"""Of a plain run that are pushed at once: behind them is counted what they led to."""
_OF_EFFORT, _OF_FLOW = 16, 16  # deliveries that are named, for an effort of 1, as a plain flow takes

Octets = bytes | memoryview


class TransferRun(NamedTuple):
    """Whole messages on one link: where each payload is in `stream`, as `_frames.c` says; their frames are pushed."""

    stream: Octets
    places: bytes
    transaction: bytes | None = None


Piece = tuple[Octets, int, int, Frame | Fault | Part | TransferRun | Stated | None]


class FrameReader:
    """Feeds on chunks of one connection's stream, from behind the protocol header on."""

    def __init__(self, frame_size_max: int, message_size_max: int, endpoints: Endpoints) -> None:
        self._frame_size_max = frame_size_max
        self._message_size_max = message_size_max
        self._endpoints = endpoints
        self._rest = b""
        self.effort = 0  # of the last walk; who carries a piece out adds what it led to
        self._named = 0  # deliveries, not counted as effort yet
        self._effort_max = 0
        self.unread: Octets = b""  # by the last walk, because it took its effort

    def walk(self, data: bytes | memoryview, effort_max: int = 0) -> Iterator[Piece]:
        """The pieces to push: (octets, start, end, None) for a plain run, or Stated where outcomes are stated in it
        inside transactions, (octets, start, end, Frame) for a frame to be pushed alone, (octets, start, end, Part)
        where that is one transfer of several, (octets, start, end, Run) for messages without payloads, (octets, start,
        start, Fault) for a frame that is not pushed, and for the end of it all. What is left of an unfinished frame
        waits for the next chunk, and is all that is copied. With `effort_max` it ends behind the frame that takes that
        effort, and what follows is `unread`: to be given again."""
        octets = memoryview(data)
        self.effort, self._effort_max, self.unread = 0, effort_max, b""
        if self._rest:
            cut = self._missing(octets)
            whole = memoryview(self._rest + octets[:cut])
            self._rest, octets = b"", octets[cut:]
            yield from self._pieces(whole)
            if effort_max and self.effort >= effort_max:
                self.unread = bytes(self.unread) + octets if self.unread else octets  # a part of that frame may be left
                return
        if octets:
            yield from self._pieces(octets)

    def _missing(self, octets: memoryview) -> int:
        """How much of them belongs to the unfinished frame; all, where its size is not known yet or not allowed."""
        rest = self._rest
        size = int.from_bytes(rest[:4] + octets[: max(0, 4 - len(rest))])
        if len(rest) + len(octets) < 4 or not HEADER_SIZE <= size <= self._frame_size_max:
            return len(octets)
        return max(0, size - len(rest))

    def _pieces(self, data: Octets) -> Iterator[Piece]:
        end, start, position = len(data), 0, 0  # start: of the plain run that is growing
        posted: tuple[int, bytes] | None = None  # where the last frame is that stood alone, if more like it may follow
        spoken, frame_size_max, discards = Spoken(), self._frame_size_max, self._endpoints.discards
        while end - position >= HEADER_SIZE:
            if position - start >= _PLAIN_BYTES or spoken.count >= NAMED_MAX:
                yield data, start, position, spoken.take()
                start = position
            if start == position and 0 < self._effort_max <= self.effort:
                self.unread = data[position:]
                return
            size, kind, channel, head = _head(data, position) if end - position < _HEAD_SIZE else _HEAD(data, position)
            if not HEADER_SIZE <= size <= frame_size_max or kind & 0xFF or not 2 <= kind >> 8 <= size >> 2:
                if position > start:
                    yield data, start, position, spoken.take()
                yield data, position, position, Fault("framing", f"frame of size {size}, head {kind:#06x}")
                return
            if position + size > end:
                break
            if discards and channel in discards and self._is_unheard(data, position, size, kind, channel):
                if position > start:
                    yield data, start, position, spoken.take()
                start = position = position + size
                continue
            plain = kind == _PLAIN_KIND and size >= _HEAD_SIZE
            if plain and head == _DISPOSITION8:
                behind = self._dispositions(data, position, channel, spoken)
                if behind == position and spoken.highest:  # of two states of one delivery in a push it sees one
                    if position > start:
                        yield data, start, position, spoken.take()
                    start = position
                    spoken.highest.clear()
                    behind = self._dispositions(data, position, channel, spoken)
                if behind > position:
                    position = behind
                    continue
            elif plain and head == _TRANSFER8 and (cut := self._transfers(data, position, channel, posted)) is not None:
                behind, thin, run = cut
                if (run is not None or spoken.named) and position > start:  # a discharge comes behind its outcomes
                    yield data, start, position, spoken.take()
                    start = position
                if run is not None:
                    start = behind
                    yield thin, 0, len(thin), run
                position = behind
                continue
            elif size == (kind >> 8) * 4 or (plain and head == _FLOW8 and self._is_plain_flow(data, position, channel)):
                self._spend(_OF_FLOW if size > _HEAD_SIZE else 0)
                position += size  # an empty frame is a heartbeat
                continue
            alone = self._alone(data, position, size, kind, channel)
            if (parts := divided(alone)) is not None:
                if position > start:
                    yield data, start, position, spoken.take()
                data = memoryview(parts + data[position + size :])
                start, position, end, posted = 0, 0, len(data), None
                continue
            posted = _posted(alone, position) if plain and head == _TRANSFER8 else None
            if position > start:
                yield data, start, position, spoken.take()
            start = position = position + size
            yield _as_read(data, position - size, position, alone)
            if isinstance(alone, Fault):
                if alone.channel is None:
                    return
                discards.add(alone.channel)
            self.effort += _effort(alone)
        if position > start:
            yield data, start, position, spoken.take()
        self._rest = bytes(data[position:])

    # -- plain frames

    def _dispositions(self, data: Octets, position: int, channel: int, spoken: Spoken) -> int:
        """Where plain dispositions end, each about later deliveries than those before it, and in one transaction."""
        session = self._endpoints.sessions.get(channel)
        if session is None:
            return position
        before, within = spoken.highest.get(channel, -1), data[: position + _PLAIN_BYTES]
        behind, high, count, transaction = plain_frames.dispositions(
            within, position, channel, before, session.given, NAMED_MAX
        )
        if behind > position:
            self._spend(count)
            spoken.count += count
            spoken.highest[channel] = high
            if transaction is not None:
                spoken.name(channel, transaction, count)
        return behind

    def _spend(self, deliveries: int) -> None:
        self._named += deliveries
        self.effort += self._named // _OF_EFFORT
        self._named %= _OF_EFFORT

    def _is_plain_flow(self, data: Octets, position: int, channel: int) -> bool:
        session, handle = self._endpoints.sessions.get(channel), plain_frames.flowed(data, position)
        return session is not None and handle is not None and (handle < 0 or handle in session.links)

    def _transfers(
        self, data: Octets, position: int, channel: int, posted: tuple[int, bytes] | None
    ) -> tuple[int, bytes, TransferRun | None] | None:
        """Where plain transfers of one link end; their frames and the run, where they are many. None: there is none."""
        session = self._endpoints.sessions.get(channel)
        if session is None or (session.unfinished and _handle_at(data, position) in session.unfinished):
            return None
        number = session.next_id
        cut, transaction = self._cut(data, position, -1, number), None
        if cut is None and posted is not None:
            like, transaction = posted
            cut = self._cut(data, position, like, number)
        if cut is None or not session.sends_on(cut[1]):
            return None
        behind, _, following, count, thin, places = cut
        if thin is None or places is None:
            if transaction is not None:
                return None  # too few to be a run: each is decoded, as the first was
            thin, run = b"", None
        else:
            run = TransferRun(data, places, transaction)
        session.next_id = following
        session.sent += count
        return behind, thin, run

    def _cut(
        self, data: Octets, position: int, like: int, next_id: int
    ) -> tuple[int, int, int, int, bytes | None, bytes | None] | None:
        return plain_frames.cut(data, position, self._frame_size_max, self._message_size_max, like, next_id)

    # -- all others

    def _is_unheard(self, data: Octets, position: int, size: int, kind: int, channel: int) -> bool:
        """That session has ended for us: of what the peer sent before it knew, nothing counts but its END."""
        start = (kind >> 8) * 4
        at = position + start
        if size > start + 2 and data[at] == 0 and data[at + 1] == _SMALL_ULONG and data[at + 2] not in _HEARD_ALWAYS:
            return True  # what nearly all are; to decode them took 0.1 ms each, and megabytes may be on their way
        self.effort += _EFFORT_OF_DELIVERIES
        frame = _decode(data, at, position + size, channel) if size > start else None
        return frame is not None and not (isinstance(frame, Frame) and frame.code in _HEARD_ALWAYS)

    def _alone(self, data: Octets, position: int, size: int, kind: int, channel: int) -> Frame | Fault | Part:
        """Checked in every respect: its place, its fields, and what it names."""
        read = _decode(data, position + (kind >> 8) * 4, position + size, channel)
        if isinstance(read, Fault):
            return read
        fault = self._endpoints.misplaced(read)
        frame = fault or checked(read)
        if isinstance(frame, Fault):
            return frame
        fault = self._endpoints.see(frame)
        if fault is not None or frame.code != TRANSFER:
            return fault or frame
        return _following(frame, self._endpoints.sessions[channel])


def _head(data: Octets, position: int) -> tuple[int, int, int, int]:
    """Of a frame that may be no longer than this."""
    size, kind, channel = _SHORT(data, position)
    return size, kind, channel, 0


def _following(transfer: Frame, session: Session) -> Frame | Part:
    """A whole message, or what a transfer says of one that comes in several, or what is wrong with it."""
    handle, channel, fault = transfer.field(_HANDLE), transfer.channel, None
    delivery = session.unfinished.pop(handle, None)
    if delivery is None:
        delivery = MultiTransfer(transfer)
        if transfer.field(_TAG) is None:
            words = "transfer.delivery-tag is missing in the first transfer of a delivery (AMQP 1.0, 2.7.5)"
            fault = Fault("invalid-field-of-link", words, channel)
        elif is_last(transfer):
            return _settled(transfer) if delivery.resumed else transfer
    elif (words := delivery.contradiction(transfer) or "") != "":
        fault = Fault("transfer-contradicts", words, channel)
        transfer = _without_fields(transfer)
    if not is_last(transfer):
        session.unfinished[handle] = delivery
    elif delivery.resumed and fault is None:
        transfer = _settled(transfer)
    return Part(transfer, delivery, fault)


def _effort(alone: Frame | Fault | Part) -> int:
    if isinstance(alone, Frame) and alone.code == DISPOSITION:
        return _EFFORT_OF_DELIVERIES + named_by(alone) // _OF_EFFORT
    if isinstance(alone, Frame) and alone.code == FLOW:
        return _EFFORT_OF_FLOW
    of_deliveries = isinstance(alone, Part) or (isinstance(alone, Frame) and alone.code in _OF_DELIVERIES)
    return _EFFORT_OF_DELIVERIES if of_deliveries else _EFFORT


def _as_read(data: Octets, start: int, end: int, alone: Frame | Fault | Part) -> Piece:
    """A frame as an engine understands it, or that it is to see nothing of it."""
    if isinstance(alone, Fault):
        return data, start, start, alone
    octets = alone.frame.octets if isinstance(alone, Part) else alone.octets
    return (data, start, end, alone) if octets is None else (octets, 0, len(octets), alone)


def _without_fields(transfer: Frame) -> Frame:
    """No more than which link it is of, and whether more comes: an engine counts it, and finds nothing odd."""
    fields = [transfer.field(_HANDLE), None, None, None, None, transfer.field(MORE)]
    return replace(transfer, octets=framed(Described(ULong(TRANSFER), fields), b"", transfer.channel))


def _settled(transfer: Frame) -> Frame:
    """The end of a delivery that is resumed, without its payload. It is ignored (H-15): an engine says nothing of what
    came settled, and keeps nothing of it."""
    fields = [*transfer.fields, *[None] * (_SETTLED + 1 - len(transfer.fields))]
    fields[_SETTLED] = True
    return replace(transfer, octets=framed(Described(ULong(TRANSFER), fields), b"", transfer.channel))


def _posted(alone: Frame | Fault | Part, position: int) -> tuple[int, bytes] | None:
    """The handle and transaction of a whole posted message, if its state has nothing else."""
    if not isinstance(alone, Frame) or alone.code != TRANSFER or alone.octets is not None:
        return None
    tag, state = alone.field(_TAG), alone.field(_STATE)
    section = state.value if state is not None and state.descriptor == _TRANSACTIONAL else []
    if not section or section[1:] not in ([], [None]) or tag is None:
        return None
    if alone.field(_SETTLE_MODE) is not None or len(tag) > _TAG_BYTES_MAX:
        return None
    return None if any(alone.field(at) for at in (MORE, _RESUME, _ABORTED)) else (position, section[0])


def _handle_at(data: Octets, position: int) -> int:
    """Of a transfer that may be plain; -1: it is not."""
    octets = bytes(data[position + _HANDLE_AT : position + _HANDLE_AT + 5])
    if octets[:1] == _UINT0:
        return 0
    width = _UINT_WIDTHS.get(octets[:1], 0)
    return int.from_bytes(octets[1 : 1 + width]) if 0 < width < len(octets) else -1


def _decode(data: Octets, start: int, end: int, channel: int) -> Frame | Fault:
    body = bytes(data[start:end])
    try:
        value, payload = decode(body)
    except DecodeError as error:
        return Fault("malformed-performative", str(error))
    changed = _understood(value, _has_names(body[:payload])) if isinstance(value, Described) else None
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


def _has_names(performative: bytes) -> bool:
    """A descriptor in it may be a symbol."""
    return b"\x00\xa3" in performative or b"\x00\xb3" in performative


def _understood(value: Described, has_names: bool) -> Described | None:
    """As proton reads it, where that is not how it came: numbers for names; and for a max-frame-size that is less than
    the least there is, that one, which every peer takes (2.7.1). Proton would do so, too, and remark on stderr."""
    numbered = numeric(value) if has_names else None
    section = value if numbered is None else numbered
    fields = section.value
    if section.descriptor != OPEN or not isinstance(fields, list) or len(fields) <= _FRAME_SIZE_AT:
        return numbered
    size = fields[_FRAME_SIZE_AT]
    if not isinstance(size, UInt) or size >= _FRAME_SIZE_MIN:
        return numbered
    return Described(ULong(OPEN), [*fields[:_FRAME_SIZE_AT], UInt(_FRAME_SIZE_MIN), *fields[_FRAME_SIZE_AT + 1 :]])
