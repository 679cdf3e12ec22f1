"""The tap: the same pieces however the stream is cut, and a fault or a frame whatever comes."""

from __future__ import annotations

import struct
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gateway.frames import ATTACH, BEGIN, DETACH, DISPOSITION, END, FLOW, OPEN, TRANSFER, Fault, Frame
from gateway.handles import Handles
from gateway.tap import Run, Tap
from tests.wire import frames
from transformers.amqp_types import AmqpMap, Described, Symbol, UInt, ULong

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
    "transfer": frames.transfer(0, MESSAGE),
    "settled": frames.transfer(77, MESSAGE, settled=True),
    "far-handle": frames.transfer(70_000, MESSAGE, handle=300),
    "disposition": frames.disposition(0, 9, frames.state("accepted")),
    "rejected": frames.disposition(0, 9, frames.state("rejected", Described(ULong(0x1D), [Symbol("a:b"), "why"]))),
    "flow": frames.flow(1, 100),
    "heartbeat": HEARTBEAT,
    "extended-heartbeat": b"\x00\x00\x00\x0c\x03\x00\x00\x00abcd",
}
ALONE = {
    "more": (TRANSFER, frames.transfer(0, MESSAGE, more=True)),
    "state": (TRANSFER, frames.transfer(0, MESSAGE, state=Described(ULong(0x34), [b"t", None]))),
    "aborted": (TRANSFER, frames.aborted()),
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


def opened() -> Handles:
    """Of a connection whose OPEN has come."""
    handles = Handles(channel_max=5)
    assert handles.see(Frame(0, OPEN, ("peer",))) is None
    return handles


def walk(chunks: list[bytes]) -> list[Any]:
    """Frames, faults and the octets of plain runs, joined: (octets | Frame | Fault)."""
    tap = Tap(FRAME_MAX, MESSAGE_MAX, opened())
    pieces: list[Any] = []
    for chunk in chunks:
        for data, start, end, frame in tap.walk(chunk):
            if isinstance(frame, Fault):
                pieces.append(frame)
                if frame.channel is None:
                    return pieces
            elif isinstance(frame, Run):
                whole = with_payloads(bytes(data[start:end]), frame)
                if pieces and isinstance(pieces[-1], bytearray):
                    pieces[-1] += whole
                else:
                    pieces.append(bytearray(whole))
            elif frame is not None:
                pieces += [bytes(data[start:end]), frame]
            elif pieces and isinstance(pieces[-1], bytearray):
                pieces[-1] += data[start:end]
            else:
                pieces.append(bytearray(data[start:end]))
    return pieces


def with_payloads(thin: bytes, run: Run) -> bytes:
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
    assert at_once(PLAIN[plain], PLAIN[plain]) == [PLAIN[plain] * 2]


def runs(*data: bytes) -> list[int]:
    """How many messages each run has."""
    tap = Tap(FRAME_MAX, MESSAGE_MAX, opened())
    pieces = tap.walk(b"".join([*ATTACHED, *data]))
    return [len(frame.places) // 8 for *_, frame in pieces if isinstance(frame, Run)]


def test_many_messages_on_one_link_are_a_run() -> None:
    stream = [frames.transfer(number, MESSAGE) for number in range(9)]
    assert runs(*stream) == [9]
    assert runs(*stream, PLAIN["disposition"], *stream) == [9, 9]
    assert runs(*stream, frames.begin(1), frames.attach_sender("q", 0, "x", channel=1), *stream) == [9, 9]
    assert runs(*stream[:3]) == []  # not worth it


def test_the_end_of_a_message_in_parts_is_of_no_run() -> None:
    stream = [frames.transfer(number, MESSAGE) for number in range(9)]
    part = frames.transfer(0, MESSAGE, more=True)
    assert runs(part, *stream) == [8]
    assert runs(part, frames.transfer(0, MESSAGE, more=True), *stream) == [8]
    assert runs(part, frames.aborted(), *stream) == [9]


def test_a_message_above_the_limit_is_of_no_run() -> None:
    large = frames.transfer(5, frames.message(b"x" * MESSAGE_MAX))
    stream = [frames.transfer(number, MESSAGE) for number in range(9)]
    assert runs(*stream, large, *stream) == [9, 9]


def posted(number: int, transaction: bytes | None = b"t", **said: Any) -> bytes:
    said.setdefault("state", Described(ULong(0x34), [transaction, None]))
    return frames.transfer(number, MESSAGE, **said)


def posted_runs(*data: bytes) -> list[tuple[bytes | None, int]]:
    """The transaction of each run, and how many messages it has."""
    tap = Tap(FRAME_MAX, MESSAGE_MAX, opened())
    pieces = tap.walk(b"".join([*ATTACHED, *data]))
    return [(frame.transaction, len(frame.places) // 8) for *_, frame in pieces if isinstance(frame, Run)]


def test_messages_posted_in_one_transaction_are_a_run_behind_the_first() -> None:
    stream = [posted(number) for number in range(9)]
    others = [posted(number, b"u") for number in range(9)]
    assert posted_runs(*stream) == [(b"t", 8)]
    assert posted_runs(*stream, *others, *stream) == [(b"t", 8), (b"u", 8), (b"t", 8)]
    assert posted_runs(*stream, PLAIN["flow"], *stream) == [(b"t", 8), (b"t", 9)], "a flow says nothing of it"
    assert posted_runs(*stream, frames.detach(0), frames.attach_sender("q"), *stream) == [(b"t", 8), (b"t", 8)]
    plain = [frames.transfer(number, MESSAGE) for number in range(9)]
    assert posted_runs(*stream, *plain, *stream) == [(b"t", 8), (None, 9), (b"t", 9)]
    assert posted_runs(*stream[:4]) == []  # not worth it


@pytest.mark.parametrize(
    "odd",
    [
        posted(0, more=True),
        posted(0, rcv=1),
        posted(0, state=Described(ULong(0x34), [b"t", Described(ULong(0x24), [])])),
        posted(0, state=Described(ULong(0x34), ["t"])),
        posted(0, state=Described(ULong(0x34), [])),
        posted(0, state=Described(ULong(0x24), [])),
        posted(0, state=Described(Symbol("amqp:transactional-state:list"), [b"t"])),
        posted(0, handle=300),
    ],
    ids=["more", "mode", "outcome", "word", "nothing", "accepted", "named", "another-link"],
)
def test_what_says_more_than_its_transaction_begins_no_run_and_ends_one(odd: bytes) -> None:
    stream = [posted(number) for number in range(5)]
    assert posted_runs(*stream, odd, *stream) == [(b"t", 4), (b"t", 4)]
    assert posted_runs(*[odd] * 9) == []


@pytest.mark.parametrize("alone", ALONE)
def test_every_other_frame_is_alone_and_decoded(alone: str) -> None:
    code, data = ALONE[alone]
    before, octets, frame, after = at_once(HEARTBEAT, data, HEARTBEAT)
    assert (before, octets, after) == (HEARTBEAT, data, HEARTBEAT)
    assert isinstance(frame, Frame)
    assert frame.code == code


def test_a_sender_may_number_and_tag_as_it_likes() -> None:
    tag = b"x" * 32
    fields = b"\x43\x70\x00\x01\x00\x00\xa0\x20" + tag + b"\x43\x41\x42\x40\x40\x42\x42\x42"
    body = b"\x00\x53\x14\xc0" + bytes((len(fields) + 1, 11)) + fields + MESSAGE
    data = struct.pack(">IBBH", len(body) + 8, 2, 0, 0) + body
    assert at_once(data) == [data]


@pytest.mark.parametrize(
    ("data", "handle"),
    [
        (frames.transfer(0, MESSAGE, handle=5), 5),
        (frames.transfer(0, MESSAGE, handle=301), 301),
        (frames.transfer(0, MESSAGE, handle=5, more=True), 5),
        (frames.flow(5, 1), 5),
        (frames.flow(301, 1), 301),
        (frames.detach(5), 5),
        (frames.detach(0) + frames.transfer(0, MESSAGE), 0),
    ],
)
def test_P_5_a_handle_that_is_not_attached_is_a_fault_of_its_session_and_reading_goes_on(
    data: bytes, handle: int
) -> None:
    pieces = at_once(PLAIN["transfer"], data, PLAIN["flow"])
    (fault,) = [piece for piece in pieces if isinstance(piece, Fault)]
    assert (fault.fault, fault.channel) == ("unattached-handle", 0)
    assert f"handle {handle} " in fault.detail
    assert pieces[-1] == PLAIN["flow"]


def test_a_run_that_changes_its_link_is_looked_at_again() -> None:
    """Both in one chunk, and the third link is not there."""
    other = frames.attach_sender("q", 2, "other")
    run = [PLAIN["transfer"]] * 3 + [frames.transfer(3, MESSAGE, handle=2)]
    _, attached, same, fault = at_once(other, *run, frames.transfer(4, MESSAGE, handle=9))
    assert attached.code == ATTACH
    assert same == b"".join(run)
    assert fault.fault == "unattached-handle"


def test_a_flow_that_begins_as_the_transfer_before_is_looked_at() -> None:
    transfer, flow = frames.transfer(300, MESSAGE), frames.flow(9, 10)
    assert transfer[14:16] == flow[14:16]
    before, fault, after = at_once(transfer, flow, transfer)
    assert before == after == transfer
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
        (frames.frame(ATTACH, ["name"]), "malformed-performative"),
        (frames.frame(ATTACH, [None, UInt(3), True]), "malformed-performative"),
        (frames.frame(TRANSFER, [None, UInt(3), b"t", UInt(0), False]), "malformed-performative"),
        (frames.frame(DETACH, []), "malformed-performative"),
    ],
)
def test_what_no_engine_should_see_is_a_fault_and_the_end(data: bytes, fault: str) -> None:
    plain, said = at_once(PLAIN["transfer"], data, PLAIN["transfer"])
    assert plain == PLAIN["transfer"]
    assert (said.fault, said.channel) == (fault, None)


EVERYTHING = b"".join([*ATTACHED, *PLAIN.values(), *(data for _, data in ALONE.values()), *PLAIN.values()])
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
    tap = Tap(FRAME_MAX, MESSAGE_MAX, handles)
    run = [frames.transfer(number, MESSAGE) for number in range(9)]
    list(tap.walk(b"".join([*ATTACHED, frames.begin(1), frames.attach_sender("q", 0, "x", channel=1)])))
    handles.discards.add(0)
    unheard = [*run, frames.attach_sender("q", 9, "late"), *PLAIN.values(), frames.begin(), b"\0\0\0\x09\2\0\0\0\xff"]
    unheard = [each for each in unheard if each not in (PLAIN["disposition"], PLAIN["rejected"])]
    other = frames.transfer(3, MESSAGE, channel=1)
    pieces = list(tap.walk(b"".join([*unheard, other, *unheard, frames.end(), frames.begin()])))
    heartbeats = PLAIN["heartbeat"] + PLAIN["extended-heartbeat"]
    said = b"".join(bytes(data[start:end]) for data, start, end, _ in pieces)
    assert said == heartbeats + other + heartbeats + frames.end() + frames.begin()
    assert not handles.discards


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
    PLAIN["rejected"],
    HEARTBEAT,
    frames.disposition(1, 2, frames.state("accepted"), sender=True),
    frames.disposition(5, 2, frames.state("accepted")),
    frames.disposition(2, 5, Described(Symbol("amqp:accepted:list"), [])),
    frames.frame(DISPOSITION, [True, UInt(3), None, True]),
]


@settings(max_examples=500)
@given(st.lists(SAID | st.sampled_from(ODD), max_size=12), st.integers(0, 30))
def test_a_run_of_dispositions_is_what_one_after_another_is(pieces: list[bytes], cut: int) -> None:
    """A loop in C finds its end; the octets handed on together are those that the loop in Python hands on together."""
    data = b"".join(pieces)
    data = data[: len(data) - cut] if cut < len(data) else data
    whole = [comparable(piece) for piece in attached_tap().walk(data)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gateway.tap_runs.told", lambda data, position, channel, stated: (position, stated))
        singly = [comparable(piece) for piece in attached_tap().walk(data)]
    assert whole == singly


def comparable(piece: Any) -> Any:
    octets, start, end, alone = piece
    return bytes(octets[start:end]), (bytes(alone.stream), alone.places) if isinstance(alone, Run) else alone


def attached_tap() -> Tap:
    made = Tap(FRAME_MAX, MESSAGE_MAX, opened())
    for _ in made.walk(b"".join(ATTACHED) + frames.begin(channel=1)):
        pass
    return made
