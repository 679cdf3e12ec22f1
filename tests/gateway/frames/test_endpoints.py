"""Which handles are open: what an engine would close the whole connection over."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.frames import ATTACH, BEGIN, CLOSE, DETACH, END, OPEN, TRANSFER, Fault, Frame
from gateway.handles import Handles
from transformers.amqp_types import UInt, UShort


def frame(code: int, channel: int, handle: int) -> Frame:
    fields = {ATTACH: (f"link {handle}", UInt(handle), bool(handle % 2)), BEGIN: (), END: ()}.get(code, (UInt(handle),))
    return Frame(channel, code, tuple(fields))


def opened() -> Handles:
    handles = Handles(1)
    assert handles.see(Frame(0, OPEN, ("peer",))) is None
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
    for code, channel, handle in steps:
        fault = handles.see(frame(code, channel, handle))
        expected = None
        if code == BEGIN:
            expected = "framing" if channel > 1 else "session-in-use" if channel in sessions else None
            if channel <= 1:
                sessions.add(channel)
        elif code == END:
            sessions.discard(channel)
            links = {pair for pair in links if pair[0] != channel}
        elif channel in sessions and code == ATTACH:
            expected = "handle-in-use" if (channel, handle) in links else None
            links.add((channel, handle))
        elif channel in sessions:
            can = (channel, handle) in links and not (code == TRANSFER and handle % 2)  # on the odd ones it receives
            expected = None if can else "unattached-handle"
            if code == DETACH:
                links.discard((channel, handle))
        assert (fault.fault if isinstance(fault, Fault) else None) == expected


@pytest.mark.parametrize(
    "codes", [[BEGIN], [CLOSE], [OPEN, OPEN], [OPEN, CLOSE, BEGIN], [OPEN, BEGIN, CLOSE, END], [OPEN, CLOSE, OPEN]]
)
def test_out_of_order(codes: list[int]) -> None:
    handles = Handles(1)
    *before, last = [handles.see(Frame(0, code, ())) for code in codes]
    assert before == [None] * len(before)
    assert last is not None and last.fault == "out-of-order" and last.channel is None


def test_open_is_on_channel_0() -> None:
    fault = Handles(1).see(Frame(1, OPEN, ()))
    assert fault is not None and fault.fault == "out-of-order"


def test_O_6_a_name_is_free_again_with_its_detach_its_session_and_in_the_other_direction() -> None:
    handles = opened()

    def attached(channel: int, handle: int, role: bool = True) -> str | None:
        fault = handles.see(Frame(channel, ATTACH, ("sub", UInt(handle), role)))
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
    handles = Handles(1, handles_max=3)
    assert handles.see(Frame(0, OPEN, ("peer",))) is None
    for channel in (0, 1):
        assert handles.see(frame(BEGIN, channel, 0)) is None
        assert [handles.see(frame(ATTACH, channel, handle)) for handle in range(3)] == [None] * 3
    fault = handles.see(frame(ATTACH, 1, 3))
    assert fault is not None and (fault.fault, fault.channel) == ("too-many-links", 1)
    assert handles.see(frame(DETACH, 0, 1)) is None
    assert handles.see(frame(ATTACH, 0, 3)) is None


def test_a_peer_opens_no_more_than_it_lets_us_answer() -> None:
    """By its own channel-max and handle-max: proton would say nothing more on the whole connection."""
    handles = Handles(5)
    assert handles.see(Frame(0, OPEN, ("peer", None, None, UShort(1)))) is None
    for channel in (0, 3):
        assert handles.see(Frame(channel, BEGIN, (None, UInt(0), UInt(1), UInt(1), UInt(0)))) is None
        assert handles.see(frame(ATTACH, channel, 7)) is None
    fault = handles.see(frame(ATTACH, 3, 8))
    assert fault is not None and (fault.fault, fault.channel) == ("too-many-links", 3)
    fault = handles.see(frame(BEGIN, 4, 0))
    assert fault is not None and (fault.fault, fault.channel) == ("framing", None)
