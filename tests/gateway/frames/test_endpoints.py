"""Which handles are open: what an engine would close the whole connection over."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.frames import plain_frames
from gateway.frames.endpoints import Endpoints
from gateway.frames.frames import ATTACH, BEGIN, CLOSE, DETACH, DISPOSITION, END, FLOW, OPEN, TRANSFER, Fault, Frame
from gateway.frames.multi_transfer import MultiTransfer
from tests.kit.wire import frames
from transformers.codec import UInt, UShort


def frame(code: int, channel: int, handle: int) -> Frame:
    fields = {ATTACH: (f"link {handle}", UInt(handle), bool(handle % 2)), BEGIN: (), END: ()}.get(code, (UInt(handle),))
    return Frame(channel, code, tuple(fields))


def look(handles: Endpoints, frame: Frame) -> Fault | None:
    """At its place, then at the rest of it."""
    return handles.misplaced(frame) or handles.see(frame)


def opened(channel_max: int = 1, handles_max: int = 512) -> Endpoints:
    handles = Endpoints(channel_max, handles_max)
    assert look(handles, Frame(0, OPEN, ("peer",))) is None
    return handles


STEPS = st.lists(
    st.tuples(st.sampled_from([BEGIN, ATTACH, DETACH, TRANSFER, END]), st.integers(0, 2), st.integers(0, 3)),
    max_size=60,
)


@settings(max_examples=200, deadline=None)
@given(STEPS)
def test_like_a_set_of_pairs(steps: list[tuple[int, int, int]]) -> None:
    handles = opened()
    sessions: set[int] = set()
    links: set[tuple[int, int]] = set()
    numbers = dict.fromkeys(range(3), 0)
    for code, channel, handle in steps:
        seen = frame(code, channel, handle)
        if code == TRANSFER:
            seen = Frame(channel, code, (UInt(handle), UInt(numbers[channel])))
        fault = look(handles, seen)
        expected = None
        if code != BEGIN and channel not in sessions:
            expected = "out-of-order"
        elif code == BEGIN:
            expected = "framing" if channel > 1 else "session-in-use" if channel in sessions else None
            if channel <= 1 and channel not in sessions:
                sessions.add(channel)
                numbers[channel] = 0
        elif code == END:
            sessions.discard(channel)
            links = {pair for pair in links if pair[0] != channel}
        elif code == ATTACH:
            expected = "handle-in-use" if (channel, handle) in links else None
            links.add((channel, handle))
        else:
            can = (channel, handle) in links and not (code == TRANSFER and handle % 2)  # on the odd ones it receives
            expected = None if can else "unattached-handle"
            numbers[channel] += code == TRANSFER and can
            if code == DETACH:
                links.discard((channel, handle))
        assert (fault.fault if isinstance(fault, Fault) else None) == expected


ORDERS = [[BEGIN], [CLOSE], [OPEN, OPEN], [OPEN, CLOSE, BEGIN], [OPEN, BEGIN, CLOSE, END], [OPEN, CLOSE, OPEN]]
WITHOUT_A_SESSION = [[OPEN, code] for code in (ATTACH, FLOW, TRANSFER, DISPOSITION, DETACH, END)]


@pytest.mark.parametrize("codes", [*ORDERS, *WITHOUT_A_SESSION, [OPEN, BEGIN, END, END]])
def test_out_of_order(codes: list[int]) -> None:
    handles = Endpoints(1)
    *before, last = [look(handles, Frame(0, code, ())) for code in codes]
    assert before == [None] * len(before)
    assert last is not None and last.fault == "out-of-order" and last.channel is None


def test_open_is_on_channel_0() -> None:
    fault = look(Endpoints(1), Frame(1, OPEN, ()))
    assert fault is not None and fault.fault == "framing"


def test_only_an_answer_has_a_remote_channel() -> None:
    fault = look(opened(), Frame(1, BEGIN, (UShort(0), UInt(0), UInt(1), UInt(1))))
    assert fault is not None and (fault.fault, fault.channel) == ("invalid-field-of-connection", None)


ALL = 2**32
IDS = st.one_of(st.integers(0, 6), st.integers(ALL - 6, ALL - 1), st.integers(2**31 - 3, 2**31 + 3))


def transfer(number: int | None, handle: int = 0, more: bool = False, aborted: bool = False) -> Frame:
    number = None if number is None else UInt(number)
    return Frame(0, TRANSFER, (UInt(handle), number, b"t", None, None, more, None, None, None, aborted))


def attached() -> Endpoints:
    """Two links on which the peer sends."""
    handles = opened()
    assert look(handles, frame(BEGIN, 0, 0)) is look(handles, frame(ATTACH, 0, 0)) is None
    assert look(handles, frame(ATTACH, 0, 2)) is None
    return handles


@given(
    st.lists(st.tuples(st.one_of(st.none(), IDS), st.sampled_from([0, 2]), st.booleans(), st.booleans()), max_size=12)
)
def test_delivery_ids_follow_each_other_and_later_parts_need_none(transfers: list[tuple[Any, int, bool, bool]]) -> None:
    handles, awaited = attached(), None
    unfinished: set[int] = set()
    for number, handle, more, aborted in transfers:
        fault = look(handles, transfer(number, handle, more, aborted))
        if handle not in unfinished:
            if number is None or awaited not in (None, number):
                assert fault is not None and (fault.fault, fault.channel) == ("delivery-id-out-of-order", 0)
                return
            awaited = (number + 1) % ALL
        assert fault is None
        (unfinished.add if more and not aborted else unfinished.discard)(handle)
        begun = MultiTransfer(transfer(number, handle, more, aborted))
        handles.sessions[0].unfinished = dict.fromkeys(unfinished, begun)  # as the tap does


def test_a_link_that_is_detached_in_the_middle_of_a_message_begins_anew() -> None:
    handles = attached()
    assert look(handles, transfer(5, more=True)) is None
    handles.sessions[0].unfinished[0] = MultiTransfer(transfer(5, more=True))
    assert look(handles, frame(DETACH, 0, 0)) is None
    assert look(handles, frame(ATTACH, 0, 0)) is None
    fault = look(handles, transfer(None))
    assert fault is not None and fault.fault == "delivery-id-out-of-order"
    assert look(handles, transfer(6)) is None


def was_sent(number: int, behind: int, count: int) -> bool:
    """Of `count` deliveries that end before `behind`, modulo 2**32; what is half the circle away is not told from those
    to come."""
    return 0 < (behind - number) % ALL <= min(count, 2**31 - 1)


@settings(max_examples=500)
@given(st.sampled_from([0, 1, 3, 2**31, ALL - 1, ALL, ALL + 3]), IDS, st.one_of(st.none(), IDS))
def test_a_disposition_speaks_of_what_was_sent(given: int, first: int, last: int | None) -> None:
    handles = attached()
    handles.sessions[0].given = given
    fields = (True, UInt(first), None if last is None else UInt(last))
    fault = look(handles, Frame(0, DISPOSITION, fields))
    high = first if last is None else last
    good = (high - first) % ALL < 2**31 and was_sent(first, given, given) and was_sent(high, given, given)
    assert (fault is None) == good
    assert good or fault == Fault("disposition-out-of-range", fault.detail if fault else "", 0)
    octets = frames.disposition(first, high, frames.state("accepted"))
    behind, *_ = plain_frames.dispositions(octets, 0, 0, -1, given, 2**31)
    assert behind == (len(octets) if good and high >= first else 0), "where it is not decoded, the same holds"


@settings(max_examples=500)
@given(IDS, st.sampled_from([0, 1, 2, 3, 7]), IDS, IDS)
def test_a_disposition_of_the_sender_speaks_of_what_it_has_sent(
    first_id: int, sent: int, first: int, last: int
) -> None:
    handles = attached()
    for number in range(first_id, first_id + sent):
        assert look(handles, transfer(number % ALL)) is None
    fault = look(handles, Frame(0, DISPOSITION, (False, UInt(first), UInt(last))))
    good = (last - first) % ALL < 2**31
    good = good and all(was_sent(number, first_id + sent, sent) for number in (first, last))
    assert (fault is None) == good
    assert good or fault == Fault("disposition-out-of-range", fault.detail if fault else "", 0)


@pytest.mark.parametrize("first_id", [0, 1, ALL - 2])
def test_parts_of_a_delivery_are_counted_once(first_id: int) -> None:
    handles = attached()
    assert look(handles, transfer(first_id, more=True)) is None
    handles.sessions[0].unfinished[0] = MultiTransfer(transfer(first_id, more=True))
    assert look(handles, transfer(first_id)) is look(handles, transfer(None)) is None
    before = UInt((first_id - 1) % ALL)
    assert look(handles, Frame(0, DISPOSITION, (False, before, UInt(first_id)))) is not None
    assert look(handles, Frame(0, DISPOSITION, (False, UInt(first_id), None))) is None


def test_O_6_a_name_is_free_again_with_its_detach_its_session_and_in_the_other_direction() -> None:
    handles = opened()

    def attached(channel: int, handle: int, role: bool = True) -> str | None:
        fault = look(handles, Frame(channel, ATTACH, ("sub", UInt(handle), role)))
        return fault.fault if fault is not None else None

    for channel in (0, 1):
        assert handles.see(frame(BEGIN, channel, 0)) is None
    assert attached(0, 1) is None
    assert attached(0, 2, role=False) is None
    assert attached(0, 3) == "link-name-in-use"
    assert attached(1, 3) is None, "another session may: which one of the two goes is decided where both are known"
    assert handles.see(frame(DETACH, 0, 1)) is None
    assert attached(0, 3) is None
    handles.see(frame(END, 0, 0))
    handles.see(frame(BEGIN, 0, 0))
    assert attached(0, 1) is None


def test_handles_of_one_session_are_bounded() -> None:
    handles = opened(handles_max=3)
    for channel in (0, 1):
        assert handles.see(frame(BEGIN, channel, 0)) is None
        assert [handles.see(frame(ATTACH, channel, handle)) for handle in range(3)] == [None] * 3
    fault = handles.see(frame(ATTACH, 1, 3))
    assert fault is not None and (fault.fault, fault.channel) == ("framing", None)


def test_a_peer_opens_no_more_than_it_lets_us_answer() -> None:
    """By its own channel-max and handle-max: proton would say nothing more on the whole connection."""
    handles = Endpoints(5)
    assert handles.see(Frame(0, OPEN, ("peer", None, None, UShort(1)))) is None
    for channel in (0, 3):
        assert handles.see(Frame(channel, BEGIN, (None, UInt(0), UInt(1), UInt(1), UInt(0)))) is None
        assert handles.see(frame(ATTACH, channel, 7)) is None
    fault = handles.see(frame(ATTACH, 3, 8))
    assert fault is not None and (fault.fault, fault.channel) == ("too-many-links", 3)
    fault = handles.see(frame(BEGIN, 4, 0))
    assert fault is not None and (fault.fault, fault.channel) == ("framing", None)
