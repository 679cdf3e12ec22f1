"""Frames that are not decoded: what C takes for plain is what the decoder and the checks take for valid."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.frames import _frames, plain_frames
from gateway.frames.field_faults import checked
from gateway.frames.frame_reader import FrameReader, TransferRun
from gateway.frames.frames import DISPOSITION, FLOW, TRANSFER, Fault, Frame
from gateway.frames.performatives import PERFORMATIVES
from gateway.frames.plain_frames import ANY_ID
from gateway.frames.wide_dispositions import NAMED_MAX
from tests.gateway.frames.frame_cases import ALONE, ATTACHED, FRAME_MAX, HEARTBEAT, MESSAGE, MESSAGE_MAX, PLAIN, opened
from tests.kit.wire import frames
from transformers.codec import AmqpMap, Described, Symbol, UInt, ULong, decode, encode

GIVEN = 1_000
NULL, YES, NO = b"\x40", b"\x41", b"\x42"
UINTS = (b"\x43", b"\x52\x07", b"\x70\x00\x00\x00\x07")
BOOLEANS = (YES, NO, b"\x56\x00", b"\x56\x01")
BINARIES = (b"\xa0\x00", b"\xa0\x01t")
STATES = tuple(
    encode(outcome)
    for outcome in (
        *(frames.state(name) for name in ("accepted", "released", "rejected", "modified")),
        frames.state("modified", True, False),
        frames.state("received", UInt(1), ULong(0)),
        frames.in_transaction(b"t"),
        frames.in_transaction(b"t", frames.state("released")),
    )
)
ERROR = Described(ULong(0x1D), [Symbol("a:b"), "why", AmqpMap([])])
# Values that a plain frame has nowhere, of every other constructor; and such as cannot be decoded.
HEX = """
44 5307 800000000000000007 5001 5101 5401 5501 600001 610001 7100000000 7200000000 7300000000 7400000000
810000000000000000 820000000000000000 830000000000000000 840000000000000000
9400000000000000000000000000000000 9800000000000000000000000000000000
a10161 a30161 b00000000174 b10000000161 b30000000161 45 c0020140 c10100 d00000000400000000 d10000000400000000
e0030143 f0000000050000000043 5602 ff a0ff 00 0053 005324 00532440 005324c00900 005324c0020140 00532345 00533445
005327c0020143 005334c00502a0000053 00539945 00531445 008000000000000000244500 00a32445
"""
OTHERS = (
    *map(bytes.fromhex, HEX.split()),
    encode(Described(Symbol("amqp:accepted:list"), [])),
    encode(Described(Symbol("amqp:unheard-of:list"), [])),
    encode(frames.state("rejected", ERROR)),
    encode(frames.in_transaction(b"t", frames.state("rejected", ERROR))),
    encode(frames.in_transaction(b"t", frames.in_transaction(b"t", frames.state("accepted")))),
)
VALUES = (NULL, *UINTS, *BOOLEANS, *BINARIES, *STATES, *OTHERS)
LAWFUL = {
    TRANSFER: (UINTS[1], UINTS[2], BINARIES[1], UINTS[0], NO, NO, NULL, NULL, NO, NULL, NULL),
    DISPOSITION: (YES, UINTS[1], UINTS[2], YES, STATES[0], NO),
    FLOW: (NULL, *UINTS, UINTS[1], UINTS[1], UINTS[2], UINTS[0], NO),
}


def built(code: int, fields: tuple[bytes, ...], payload: bytes = b"", doff: int = 2) -> bytes:
    """A frame of these octets, whatever they are."""
    octets = b"".join(fields)
    body = b"\0\x53" + bytes((code, 0xC0, (len(octets) + 1) & 255, len(fields))) + octets + payload
    return struct.pack(">IBBH", len(body) + 4 * doff, doff, 0, 0) + bytes(4 * doff - 8) + body


def said(data: bytes | memoryview, stated: int = -1) -> tuple[int, int, int, bytes | None]:
    """Of dispositions on channel 0."""
    return plain_frames.dispositions(data, 0, 0, stated, GIVEN, NAMED_MAX)


def is_plain(data: bytes | memoryview, next_id: int = ANY_ID) -> bool:
    """C takes it, whole."""
    code = data[10]
    if code == TRANSFER:
        cut = plain_frames.cut(data, 0, FRAME_MAX, MESSAGE_MAX, -1, next_id)
        return cut is not None and cut[0] == len(data)
    if code == DISPOSITION:
        return said(data)[0] == len(data)
    return plain_frames.flowed(data, 0) is not None


def decoded(data: bytes) -> Frame | Fault:
    """As the tap decodes and checks it."""
    value, _ = decode(data, 4 * data[4])
    return checked(Frame(0, value.descriptor, tuple(value.value)))


def agrees(data: bytes) -> None:
    if not is_plain(data):
        return
    frame = decoded(data)
    assert isinstance(frame, Frame), frame
    if frame.code == TRANSFER:
        cut = plain_frames.cut(data, 0, FRAME_MAX, MESSAGE_MAX, -1, ANY_ID)
        assert cut is not None and cut[1:3] == (frame.field(0), frame.field(1) + 1)
        assert not any(map(frame.field, range(5, 11)))
    elif frame.code == DISPOSITION:
        last = frame.field(1) if frame.field(2) is None else frame.field(2)
        assert (frame.field(0), said(data)[1]) == (True, last)
    else:
        handle = frame.field(4)
        assert plain_frames.flowed(data, 0) == (-1 if handle is None else handle)
        assert not frame.field(8)


@pytest.mark.parametrize("code", LAWFUL)
def test_what_is_lawful_is_plain(code: int) -> None:
    assert is_plain(built(code, LAWFUL[code]))


EACH = [(code, at, value) for code in LAWFUL for at in range(len(PERFORMATIVES[code].fields)) for value in VALUES]


def test_each_field_of_each_type_is_plain_only_where_it_is_valid() -> None:
    """Every place, every constructor: 1,800 frames."""
    taken = 0
    for code, at, value in EACH:
        fields = [*LAWFUL[code], *[NULL] * at][: max(at + 1, len(LAWFUL[code]))]
        fields[at] = value
        data = built(code, tuple(fields), MESSAGE if code == TRANSFER else b"")
        agrees(data)
        taken += is_plain(data)
    assert taken > 80


UINT_PLACES = {TRANSFER: (0, 1, 3), DISPOSITION: (1, 2), FLOW: (0, 1, 2, 3, 4, 5, 6, 7)}


@pytest.mark.parametrize("code", UINT_PLACES)
@pytest.mark.parametrize("value", VALUES, ids=bytes.hex)
def test_a_number_has_three_widths_and_no_other_type(code: int, value: bytes) -> None:
    for at in UINT_PLACES[code]:
        fields = list(LAWFUL[code])
        fields[at] = value
        may_be_null = (code, at) in ((TRANSFER, 3), (DISPOSITION, 2), *((FLOW, place) for place in (0, 4, 5, 6, 7)))
        backwards = code == DISPOSITION and value == UINTS[0] and at == 2
        plain = (value in UINTS and not backwards) or (value == NULL and may_be_null)
        assert is_plain(built(code, tuple(fields))) == plain, (at, value)


def test_every_state_that_is_valid_and_short_is_plain() -> None:
    for value in VALUES:
        data = built(DISPOSITION, (YES, UINTS[1], NULL, YES, value))
        assert is_plain(data) == (value in (NULL, *STATES)), value


@settings(max_examples=1500)
@given(st.sampled_from([*LAWFUL]), st.lists(st.sampled_from(VALUES), max_size=12), st.integers(0, 12), st.data())
def test_what_is_plain_can_be_decoded_and_is_valid(
    code: int, tail: list[bytes], keep: int, data: st.DataObject
) -> None:
    """Lawful at the beginning, anything behind; then some octets are changed."""
    octets = bytearray(built(code, (*LAWFUL[code][:keep], *tail)[:14], data.draw(st.sampled_from([b"", MESSAGE]))))
    agrees(bytes(octets))
    for _ in range(data.draw(st.integers(0, 2))):
        octets[data.draw(st.integers(11, len(octets) - 1))] = data.draw(st.integers(0, 255))
    octets[:4] = len(octets).to_bytes(4)
    if octets[10] in LAWFUL:
        agrees(bytes(octets))


@pytest.mark.parametrize("code", LAWFUL)
@pytest.mark.parametrize("doff", [3, 4, 5, 6])
def test_what_has_an_extended_header_is_not_plain(code: int, doff: int) -> None:
    """Also not where the header looks like the frame: it is its peer's to write."""
    data = built(code, LAWFUL[code], doff=doff)
    assert not is_plain(data[:8] + built(code, LAWFUL[code])[8:])
    fake = struct.pack(">IBBH", 8 + 4 * doff, doff, 0, 0) + built(code, LAWFUL[code])[8:]
    assert not is_plain(fake[:8] + fake[8 : 8 + 4 * doff])


def plain_as(code: int, data: bytes) -> bool:
    """C takes it for that one, whatever it says."""
    if code == TRANSFER:
        return plain_frames.cut(data, 0, FRAME_MAX, MESSAGE_MAX, -1, ANY_ID) is not None
    if code == DISPOSITION:
        return said(data)[0] > 0
    return plain_frames.flowed(data, 0) is not None


@pytest.mark.parametrize("code", LAWFUL)
def test_no_octet_of_its_head_may_be_another(code: int) -> None:
    """The data offset, the type of frame, and the three octets that name the performative."""
    plain = bytearray(built(code, LAWFUL[code], MESSAGE if code == TRANSFER else b""))
    for at in (4, 5, 8, 9, 10):
        for value in range(256):
            octets = bytearray(plain)
            octets[at] = value
            assert plain_as(code, bytes(octets)) == (octets == plain), (at, value)


@pytest.mark.parametrize("code", LAWFUL)
def test_it_has_no_more_fields_than_amqp_says(code: int) -> None:
    most = len(PERFORMATIVES[code].fields)
    fields = *LAWFUL[code], *[NULL] * most
    assert plain_as(code, built(code, fields[:most])) == (code != FLOW)  # a flow with properties is looked at
    assert not plain_as(code, built(code, fields[: most + 1]))


def test_nothing_but_a_transfer_has_a_payload() -> None:
    for code, fields in LAWFUL.items():
        assert is_plain(built(code, fields, MESSAGE)) == (code == TRANSFER)


def test_a_plain_transfer_is_no_larger_than_a_frame_may_be() -> None:
    head = len(built(TRANSFER, LAWFUL[TRANSFER]))
    for size in (FRAME_MAX, FRAME_MAX + 1):
        data = built(TRANSFER, LAWFUL[TRANSFER], bytes(size - head))
        assert (plain_frames.cut(data, 0, FRAME_MAX, 2 * FRAME_MAX, -1, ANY_ID) is not None) == (size == FRAME_MAX)


@pytest.mark.parametrize("at", [6, 7])
def test_a_run_is_on_one_channel(at: int) -> None:
    run = [bytearray(frames.transfer(number, MESSAGE)) for number in range(6)]
    run[4][at] ^= 1
    cut = plain_frames.cut(b"".join(run), 0, FRAME_MAX, MESSAGE_MAX, -1, ANY_ID)
    assert cut is not None and cut[0] == sum(map(len, run[:4]))
    dispositions = [bytearray(frames.disposition(number, number, frames.state("accepted"))) for number in range(3)]
    dispositions[2][at] ^= 1
    assert said(b"".join(dispositions))[0] == sum(map(len, dispositions[:2]))


def test_frames_that_are_cut_short_are_left_to_the_rest_of_the_stream() -> None:
    """At every octet: nothing behind the end is read, and nothing of it is plain."""
    for code, fields in LAWFUL.items():
        whole = built(code, fields, MESSAGE if code == TRANSFER else b"")
        for end in range(11, len(whole)):
            part = bytearray(whole[:end])
            assert not is_plain(bytes(part))
            part[:4] = len(part).to_bytes(4)  # a frame that ends there, in the middle of its list
            assert is_plain(bytes(part)) == (code == TRANSFER and end >= len(whole) - len(MESSAGE))


def test_nothing_behind_what_came_is_read() -> None:
    """Where the rest of the frame lies there by chance: in the buffer, or in the next frame."""
    for code, fields in LAWFUL.items():
        whole = bytearray(built(code, fields, MESSAGE if code == TRANSFER else b""))
        listed = len(built(code, fields))
        for end in range(11, listed):
            assert not is_plain(memoryview(whole)[:end])
            frame = bytearray(whole)
            frame[:4] = end.to_bytes(4)
            assert not is_plain(memoryview(frame)[:end]) and not plain_as(code, bytes(frame))


def test_of_two_dispositions_alike_the_second_is_whole() -> None:
    octets = b"".join(frames.disposition(number, number, frames.state("accepted")) for number in (1, 2))
    for end in range(len(octets) // 2, len(octets)):
        assert said(memoryview(octets)[:end])[0] == len(octets) // 2


def in_transaction(number: int, transaction: bytes | None) -> bytes:
    state = frames.state("accepted")
    return frames.disposition(number, number, frames.in_transaction(transaction, state) if transaction else state)


@pytest.mark.parametrize(("first", "other"), [(b"t", b"tt"), (b"tt", b"t"), (b"t", b"u"), (b"t", None), (None, b"t")])
def test_a_run_of_dispositions_is_in_one_transaction(first: bytes | None, other: bytes | None) -> None:
    run = in_transaction(1, first) + in_transaction(2, first)
    end, stated, named, transaction = plain_frames.dispositions(
        run + in_transaction(3, other), 0, 0, -1, GIVEN, NAMED_MAX
    )
    assert (end, stated, named, transaction) == (len(run), 2, 2, first)


@pytest.mark.parametrize("second", [1, 2])
def test_a_disposition_of_a_run_is_about_later_deliveries(second: int) -> None:
    first = frames.disposition(2, 2, frames.state("accepted"))
    again = frames.disposition(second, second, frames.state("accepted"))
    assert said(first + again)[0] == len(first)
    assert said(again, 2)[0] == 0


def test_the_descriptor_of_a_plain_frame_is_one_octet() -> None:
    for code, fields in LAWFUL.items():
        plain = built(code, fields)
        long = b"\0\x80" + bytes(7) + bytes((code,)) + plain[11:]
        named = encode(Symbol(PERFORMATIVES[code].symbol))
        for body in (long, b"\0" + named + plain[11:]):
            assert not is_plain(struct.pack(">IBBH", len(body) + 8, 2, 0, 0) + body)


def test_a_plain_delivery_has_a_tag_and_the_next_number() -> None:
    for absent in (1, 2):
        fields = [*LAWFUL[TRANSFER]]
        fields[absent] = NULL
        assert not is_plain(built(TRANSFER, tuple(fields), MESSAGE))
    assert not is_plain(built(TRANSFER, LAWFUL[TRANSFER][:2]))
    assert is_plain(built(TRANSFER, LAWFUL[TRANSFER]), 7)
    assert not is_plain(built(TRANSFER, LAWFUL[TRANSFER]), 8)


SAID = st.builds(
    lambda low, more, settled, channel, state: frames.disposition(
        low, low + more, state and frames.state(state), settled=settled, channel=channel
    ),
    st.sampled_from([0, 1, 2, 5, 200, 254, 255, 256, 70_000]),
    st.integers(0, 3),
    st.booleans(),
    st.sampled_from([0, 0, 0, 1]),
    st.sampled_from(["accepted", "released", None]),
)


ODD = [
    PLAIN["transfer"],
    ALONE["rejected"][1],
    HEARTBEAT,
    PLAIN["modified"],
    frames.frame(DISPOSITION, [True, UInt(7), UInt(7), True, frames.state("accepted"), False]),
    frames.frame(DISPOSITION, [True, UInt(8), None, True, frames.state("accepted"), False]),
    frames.frame(DISPOSITION, [True, ULong(9), UInt(9), True, frames.state("accepted"), False]),
    frames.disposition(1, 2, frames.state("accepted"), sender=True),
    frames.disposition(5, 2, frames.state("accepted")),
    frames.disposition(2, 5, Described(Symbol("amqp:accepted:list"), [])),
    frames.frame(DISPOSITION, [True, UInt(3), None, True]),
]


@settings(max_examples=500)
@given(st.lists(SAID | st.sampled_from(ODD), max_size=12), st.integers(0, 30))
def test_a_run_of_dispositions_is_what_one_after_another_is(pieces: list[bytes], cut: int) -> None:
    """A loop in C finds its end, and reads a disposition by the one before where they differ in numbers only."""
    data = b"".join(pieces)
    data = data[: len(data) - cut] if cut < len(data) else data
    whole = [comparable(piece) for piece in attached_tap().walk(data)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gateway.frames.plain_frames.dispositions", each_alone)
        singly = [comparable(piece) for piece in attached_tap().walk(data)]
    assert whole == singly


def each_alone(data: Any, position: int, *rest: int) -> tuple[int, int, int, bytes | None]:
    return _frames.dispositions(data[: position + int.from_bytes(data[position : position + 4])], position, *rest)


def comparable(piece: Any) -> Any:
    octets, start, end, alone = piece
    return bytes(octets[start:end]), (bytes(alone.stream), alone.places) if isinstance(alone, TransferRun) else alone


def attached_tap() -> FrameReader:
    handles = opened()
    made = FrameReader(FRAME_MAX, MESSAGE_MAX, handles)
    for _ in made.walk(b"".join(ATTACHED) + frames.begin(channel=1)):
        pass
    for session in handles.sessions.values():
        session.given = 100_000
    return made
