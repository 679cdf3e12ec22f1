"""The tap: the same pieces however the stream is cut, and a fault or a frame whatever comes."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gateway.frames.frame_reader import FrameReader, TransferRun
from gateway.frames.frames import ATTACH, BEGIN, TRANSFER, Fault, Frame
from gateway.frames.multi_transfer import Part
from gateway.frames.stated_in_transactions import Stated
from tests.gateway.frames.frame_cases import (
    ALONE,
    ATTACHED,
    FRAME_MAX,
    HEARTBEAT,
    MESSAGE,
    MESSAGE_MAX,
    PLAIN,
    opened,
    pieces_of,
)
from tests.kit.wire import frames
from transformers.codec import Described, Symbol, UInt, ULong, encode

BEFORE = {
    "aborted": [frames.transfer(0, MESSAGE, more=True)],
    "released-of-the-sender": [PLAIN["transfer"]],
}  # without which some may not come


def walk(chunks: list[bytes]) -> list[Any]:
    """Frames, faults and the octets of plain runs, joined: (octets | Frame | Fault)."""
    pieces: list[Any] = []
    for data, start, end, frame in pieces_of(chunks):
        if isinstance(frame, Fault):
            pieces.append(frame)
            if frame.channel is None:
                return pieces
        elif isinstance(frame, TransferRun):
            whole = with_payloads(bytes(data[start:end]), frame)
            if pieces and isinstance(pieces[-1], bytearray):
                pieces[-1] += whole
            else:
                pieces.append(bytearray(whole))
        elif frame is not None and not isinstance(frame, Stated):
            pieces += [bytes(data[start:end]), frame.frame if isinstance(frame, Part) else frame]
        elif pieces and isinstance(pieces[-1], bytearray):
            pieces[-1] += data[start:end]
        else:
            pieces.append(bytearray(data[start:end]))
    return pieces


def with_payloads(thin: bytes, run: TransferRun) -> bytes:
    """The frames of a run as they were in the stream."""
    whole = b""
    for payload, size in struct.iter_unpack("=II", run.places):
        end = int.from_bytes(thin[:4])
        whole += struct.pack(">I", end + size) + thin[4:end] + run.stream[payload : payload + size]
        thin = thin[end:]
    assert not thin
    return whole


def at_once(*data: bytes) -> list[Any]:
    return walk([b"".join([*ATTACHED, *data])])[2 * len(ATTACHED) :]


@pytest.mark.parametrize("plain", PLAIN)
def test_plain_frames_are_not_looked_at_alone(plain: str) -> None:
    again = PLAIN["settled"] if plain == "transfer" else b"" if plain in ("settled", "far-handle") else PLAIN[plain]
    assert at_once(PLAIN[plain], again) == [PLAIN[plain] + again]


def whole(count: int, first: int = 0) -> list[bytes]:
    return [frames.transfer(number, MESSAGE) for number in range(first, first + count)]


def runs(*data: bytes) -> list[int]:
    """How many messages each run has."""
    pieces = pieces_of([b"".join([*ATTACHED, *data])])
    return [len(frame.places) // 8 for *_, frame in pieces if isinstance(frame, TransferRun)]


def test_many_messages_on_one_link_are_a_run() -> None:
    other = [frames.begin(1), frames.attach_sender("q", 0, "x", channel=1)]
    assert runs(*whole(9)) == [9]
    assert runs(*whole(9), PLAIN["disposition"], *whole(9, 9)) == [9, 9]
    assert runs(*whole(9), *other, *whole(9, 9)) == [9, 9]
    assert runs(*whole(9), *other, *(frames.transfer(number, MESSAGE, channel=1) for number in range(9))) == [9, 9]
    assert runs(*whole(3)) == []  # not worth it


def test_the_end_of_a_message_in_parts_is_of_no_run() -> None:
    part = frames.transfer(0, MESSAGE, more=True)
    assert runs(part, *whole(9)) == [8]
    assert runs(part, part, *whole(9)) == [8]
    assert runs(part, frames.aborted(), *whole(9, 1)) == [9]


@pytest.mark.parametrize("first", [0, 2**32 - 6])
@pytest.mark.parametrize("size", [1, 3, 4, 9])
def test_each_delivery_is_counted_however_it_comes(size: int, first: int) -> None:
    """Alone, in a few, in a run, posted, in parts: a disposition of their sender names these and no other."""
    numbers = [(first + at) % 2**32 for at in range(2 * size + 1)]
    plain, in_parts, post = numbers[:size], numbers[size], numbers[size + 1 :]
    octets = [
        *(frames.transfer(number, MESSAGE) for number in plain),
        *(frames.transfer(in_parts, MESSAGE, more=more) for more in (True, True, False)),
        *(posted(number) for number in post),
    ]
    for low, is_known in ((first, True), ((first - 1) % 2**32, False)):
        spoken = frames.disposition(low, numbers[-1], frames.state("accepted"), sender=True)
        *_, (*_, last) = pieces_of([b"".join([*ATTACHED, *octets, spoken])])
        assert isinstance(last, Frame if is_known else Fault), last


def test_a_message_above_the_limit_is_of_no_run() -> None:
    large = frames.transfer(9, frames.message(b"x" * MESSAGE_MAX))
    assert runs(*whole(9), large, *whole(9, 10)) == [9, 9]


def posted(number: int, transaction: bytes | None = b"t", **fields: Any) -> bytes:
    fields.setdefault("state", Described(ULong(0x34), [transaction, None]))
    return frames.transfer(number, MESSAGE, **fields)


def posted_runs(*data: Callable[[int], bytes] | bytes) -> list[tuple[bytes | None, int]]:
    """The transaction of each run, and how many messages it has. A message is told its delivery-id."""
    numbers = itertools.count()
    octets = [part if isinstance(part, bytes) else part(next(numbers)) for part in data]
    pieces = pieces_of([b"".join([*ATTACHED, *octets])])
    return [(frame.transaction, len(frame.places) // 8) for *_, frame in pieces if isinstance(frame, TransferRun)]


def test_messages_posted_in_one_transaction_are_a_run_behind_the_first() -> None:
    stream: list[Any] = [posted] * 9
    others = [lambda number: posted(number, b"u")] * 9
    assert posted_runs(*stream) == [(b"t", 8)]
    assert posted_runs(*stream, *others, *stream) == [(b"t", 8), (b"u", 8), (b"t", 8)]
    assert posted_runs(*stream, PLAIN["flow"], *stream) == [(b"t", 8), (b"t", 9)], "a flow says nothing of it"
    assert posted_runs(*stream, frames.detach(0), frames.attach_sender("q"), *stream) == [(b"t", 8), (b"t", 8)]
    plain = [lambda number: frames.transfer(number, MESSAGE)] * 9
    assert posted_runs(*stream, *plain, *stream) == [(b"t", 8), (None, 9), (b"t", 9)]
    assert posted_runs(*stream[:4]) == []  # not worth it


@pytest.mark.parametrize(
    "odd",
    [
        {"rcv": 1},
        {"state": Described(ULong(0x34), [b"t", Described(ULong(0x24), [])])},
        {"state": Described(ULong(0x24), [])},
        {"state": Described(Symbol("amqp:transactional-state:list"), [b"t"])},
        {"tag": b"t" * 33},
    ],
    ids=["mode", "outcome", "accepted", "named", "long-tag"],
)
def test_what_says_more_than_its_transaction_begins_no_run_and_ends_one(odd: dict[str, Any]) -> None:
    stream: list[Any] = [posted] * 5
    odd_frames = [lambda number: posted(number, **odd)]
    assert posted_runs(*stream, *odd_frames, *stream) == [(b"t", 4), (b"t", 4)]
    assert posted_runs(*odd_frames * 9) == []


def test_a_transfer_that_is_encoded_otherwise_begins_no_run() -> None:
    """What is alike is compared at places that only the short encoding has."""
    long = Described(ULong(0x14), [UInt(0), UInt(0), b"0", UInt(0), False, False, None, frames.in_transaction(b"t")])
    fields = encode(long)[5:]
    body = b"\x00\x53\x14\xd0" + struct.pack(">II", len(fields) + 3, 8) + fields[1:] + MESSAGE
    first = struct.pack(">IBBH", len(body) + 8, 2, 0, 0) + body
    assert posted_runs(first, *[posted(number) for number in range(1, 9)]) == [(b"t", 7)]


@pytest.mark.parametrize("alone", ALONE)
def test_every_other_frame_is_alone_and_decoded(alone: str) -> None:
    code, data = ALONE[alone]
    before = b"".join(BEFORE.get(alone, ())) + HEARTBEAT
    *_, output, octets, frame, after = at_once(before, data, HEARTBEAT)
    assert (output[-8:], octets, after) == (HEARTBEAT, data, HEARTBEAT)
    assert isinstance(frame, Frame)
    assert frame.code == code


def parts(*data: bytes) -> list[Part | TransferRun]:
    """The transfers of deliveries that come in several, and the runs."""
    pieces = pieces_of([b"".join([*ATTACHED, *data])])
    return [frame for *_, frame in pieces if isinstance(frame, Part | TransferRun)]


def test_every_transfer_of_a_delivery_in_several_is_alone_and_knows_its_delivery() -> None:
    """Also the last one, which looks like a message of its own; of other links, and behind it, there are runs."""
    stream = [posted(number) for number in range(30, 39)]
    far = [frames.transfer(number, MESSAGE, 300) for number in range(21, 30)]
    first, between, last, run = parts(posted(20, more=True), *far, posted(20), *stream)
    assert (
        isinstance(first, Part)
        and isinstance(last, Part)
        and isinstance(run, TransferRun)
        and isinstance(between, TransferRun)
    )
    assert first.delivery is last.delivery and (first.fault, last.fault) == (None, None)
    assert first.delivery.transaction == b"t" and len(run.places) // 8 == 8
    stream = [posted(number) for number in range(21, 30)]
    [_, middle, last, run] = parts(posted(20, more=True), posted(20, b"u", more=True), posted(20), *stream)
    assert isinstance(middle, Part) and middle.fault is not None and middle.fault.fault == "transfer-contradicts"
    assert middle.delivery.named == {b"t", b"u"}
    for end in (frames.aborted(), frames.detach(0) + frames.attach_sender("q"), frames.end() + b"".join(ATTACHED)):
        assert isinstance(parts(posted(20, more=True), end, *whole(9, 21))[-1], TransferRun)


def test_the_first_transfer_of_a_delivery_has_a_tag() -> None:
    for more in (False, True):
        untagged = frames.frame(TRANSFER, [UInt(0), UInt(0), None, UInt(0), False, more], MESSAGE)
        [part] = parts(untagged)
        assert isinstance(part, Part) and part.fault is not None and part.fault.fault == "invalid-field-of-link"


def test_a_sender_may_number_and_tag_as_it_likes() -> None:
    tag = b"x" * 32
    fields = b"\x43\x70\x00\x01\x00\x00\xa0\x20" + tag + b"\x43\x41\x42\x40\x40\x42\x42\x42"
    body = b"\x00\x53\x14\xc0" + bytes((len(fields) + 1, 11)) + fields + MESSAGE
    data = struct.pack(">IBBH", len(body) + 8, 2, 0, 0) + body
    assert at_once(data) == [data]


@pytest.mark.parametrize(
    ("data", "handle"),
    [
        (frames.transfer(70_001, MESSAGE, handle=5), 5),
        (frames.transfer(70_001, MESSAGE, handle=301), 301),
        (frames.transfer(70_001, MESSAGE, handle=5, more=True), 5),
        (frames.flow(5, 1), 5),
        (frames.flow(301, 1), 301),
        (frames.detach(5), 5),
        (frames.detach(0) + frames.transfer(0, MESSAGE), 0),
    ],
)
def test_P_5_a_handle_that_is_not_attached_is_a_fault_of_its_session_and_reading_goes_on(
    data: bytes, handle: int
) -> None:
    """Of other sessions; of this one nothing more is read but its END."""
    other = frames.flow(1, 1, channel=1)
    pieces = at_once(
        frames.begin(1), frames.attach_receiver("q", channel=1), PLAIN["transfer"], data, PLAIN["flow"], other
    )
    (fault,) = [piece for piece in pieces if isinstance(piece, Fault)]
    assert (fault.fault, fault.channel) == ("unattached-handle", 0)
    assert f"handle {handle} " in fault.detail
    assert pieces[-1] == other


def test_a_run_that_changes_its_link_is_looked_at_again() -> None:
    """Both in one chunk, and the third link is not there."""
    other = frames.attach_sender("q", 2, "other")
    run = [*whole(3), frames.transfer(3, MESSAGE, handle=2)]
    _, attached, same, fault = at_once(other, *run, frames.transfer(4, MESSAGE, handle=9))
    assert attached.code == ATTACH
    assert same == b"".join(run)
    assert fault.fault == "unattached-handle"


def test_a_flow_that_begins_as_the_transfer_before_is_looked_at() -> None:
    transfer, flow = frames.transfer(300, MESSAGE), frames.flow(9, 10)
    assert transfer[14:16] == flow[14:16]
    before, fault = at_once(transfer, flow)
    assert before == transfer
    assert fault.fault == "unattached-handle"


def test_a_transfer_where_the_peer_receives_is_a_fault_of_its_session() -> None:
    for transfer in (frames.transfer(0, MESSAGE, handle=1), frames.transfer(0, MESSAGE, handle=1, more=True)):
        [fault] = at_once(transfer)
        assert (fault.fault, fault.channel) == ("unattached-handle", 0)


def test_a_handle_is_free_when_its_session_has_ended() -> None:
    assert isinstance(at_once(frames.attach_sender("q"))[0], Fault)
    again = at_once(frames.end(), frames.begin(), frames.attach_sender("q"), PLAIN["transfer"])
    assert not [piece for piece in again if isinstance(piece, Fault)]


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (struct.pack(">IBBH", 7, 2, 0, 0), "framing"),
        (struct.pack(">IBBH", FRAME_MAX + 1, 2, 0, 0), "framing"),
        (struct.pack(">IBBH", 8, 1, 0, 0), "framing"),
        (struct.pack(">IBBH", 8, 3, 0, 0), "framing"),
        (struct.pack(">IBBH", 8, 2, 1, 0), "framing"),
        (frames.begin(channel=6), "framing"),
        (frames.frame(0x19, []), "unknown-performative"),
        (frames.frame(0x0F, []), "unknown-performative"),
        (struct.pack(">IBBH", 9, 2, 0, 0) + b"\x40", "unknown-performative"),
        (struct.pack(">IBBH", 9, 2, 0, 0) + b"\xff", "malformed-performative"),
        (struct.pack(">IBBH", 12, 2, 0, 0) + b"\x00\x53\x10\x40", "malformed-performative"),
        (frames.frame(BEGIN, [], channel=1), "invalid-field-of-connection"),
        (frames.flow(0, 1, channel=4), "out-of-order"),
        (frames.transfer(0, MESSAGE, channel=4), "out-of-order"),
        (frames.disposition(0, 0, None, channel=4), "out-of-order"),
        (frames.open_(), "out-of-order"),
    ],
)
def test_what_no_engine_should_see_is_a_fault_and_the_end(data: bytes, fault: str) -> None:
    plain, output = at_once(PLAIN["transfer"], data, PLAIN["settled"])
    assert plain == PLAIN["transfer"]
    assert (output.fault, output.channel) == (fault, None)


EVERYTHING = b"".join([*ATTACHED, *PLAIN.values(), *(data for _, data in ALONE.values()), *ATTACHED, *PLAIN.values()])
WHOLE = walk([EVERYTHING])


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, len(EVERYTHING)), max_size=20))
@example(list(range(len(EVERYTHING))))
def test_however_the_stream_is_cut_the_pieces_are_the_same(cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(EVERYTHING)]
    assert walk([EVERYTHING[begin:end] for begin, end in pairwise(edges)]) == WHOLE


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200), st.integers(0, len(EVERYTHING)), st.integers(0, 60))
def test_whatever_comes_is_frames_or_a_fault(noise: bytes, at: int, cut: int) -> None:
    data = EVERYTHING[:at] + noise + EVERYTHING[at + cut :]
    pieces = walk([data])
    pushed = b"".join(piece for piece in pieces if isinstance(piece, bytes | bytearray))
    assert len(pushed) <= len(data)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=60), st.integers(0x10, 0x18))
def test_random_bodies_are_frames_or_a_fault(body: bytes, code: int) -> None:
    data = struct.pack(">IBBH", len(body) + 11, 2, 0, 0) + b"\x00\x53" + bytes((code,)) + body
    for piece in walk([b"".join(ATTACHED) + data])[2 * len(ATTACHED) :]:
        assert isinstance(piece, bytes | bytearray | Frame | Fault)


def test_a_heartbeat_does_not_borrow_the_next_frame() -> None:
    """Sixteen octets are read at once, eight of them may be the next frame's."""
    assert at_once(HEARTBEAT, ALONE["more"][1])[0] == HEARTBEAT


def test_of_a_session_that_we_have_ended_only_its_end_is_heard() -> None:
    handles = opened()
    tap = FrameReader(FRAME_MAX, MESSAGE_MAX, handles)
    run = [frames.transfer(number, MESSAGE) for number in range(9)]
    list(tap.walk(b"".join([*ATTACHED, frames.begin(1), frames.attach_sender("q", 0, "x", channel=1)])))
    handles.discards.add(0)
    unprocessed = [
        *run,
        frames.attach_sender("q", 9, "late"),
        *PLAIN.values(),
        frames.begin(),
        b"\0\0\0\x09\2\0\0\0\xff",
    ]
    other = frames.transfer(3, MESSAGE, channel=1)
    pieces = list(tap.walk(b"".join([*unprocessed, other, *unprocessed, frames.end(), frames.begin()])))
    heartbeats = PLAIN["heartbeat"] + PLAIN["extended-heartbeat"]
    octets = b"".join(bytes(data[start:end]) for data, start, end, _ in pieces)
    assert octets == heartbeats + other + heartbeats + frames.end() + frames.begin()
    assert not handles.discards


@pytest.mark.parametrize("size", [11, 64, 10_000])
def test_a_walk_ends_where_it_took_its_effort_and_goes_on_there(size: int) -> None:
    stream = b"".join([*ATTACHED, *[frames.begin(1), PLAIN["flow"], HEARTBEAT, frames.end(1)] * 20, frames.begin(2)])
    whole = [piece[3] for piece in pieces_of([stream]) if piece[3] is not None]
    tap, pieces, efforts = FrameReader(FRAME_MAX, MESSAGE_MAX, opened()), list[object](), list[int]()
    for at in range(0, len(stream), size):
        rest: bytes | memoryview = stream[at : at + size]
        while rest:
            pieces += [piece[3] for piece in tap.walk(rest, 24) if piece[3] is not None]
            efforts.append(tap.effort)
            rest = tap.unread
    assert pieces == whole
    assert max(efforts) <= 24 + 8 and sum(efforts) == 8 * len(whole) + 20, "a plain flow is one"
