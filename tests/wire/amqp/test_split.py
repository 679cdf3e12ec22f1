"""A stream has no joints: the same conversation, cut anywhere, gives the same frames."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import example, given, settings
from hypothesis import strategies as st

from mappings import load_tables
from tests.kit.wire import frames
from tests.kit.wire.conversation import Conversation, build_gateway
from tests.kit.wire.scripted_realm import ScriptedRealm

TABLES = load_tables()
MESSAGE = frames.message()

CONVERSATION = b"".join(
    [
        frames.AMQP_HEADER,
        frames.open_("peer"),
        frames.begin(),
        frames.attach_sender("q"),
        b"\x00\x00\x00\x08\x02\x00\x00\x00",
        frames.attach_receiver("q"),
        frames.begin(channel=3),
        frames.flow(1, 2, drain=True),
        frames.attach_sender("missing", handle=5, name="unknown"),
        frames.attach_sender("q", handle=0, name="elsewhere", channel=3),
    ]
)
TRANSFERS = b"".join(
    [
        frames.flow(1, 4, delivery_count=2),
        frames.transfer(0, MESSAGE),
        frames.transfer(1, MESSAGE, settled=True),
        frames.transfer(2, MESSAGE[:5], more=True),
        frames.transfer(2, MESSAGE[5:]),
        frames.transfer(3, b""),
        frames.transfer(0, MESSAGE, channel=3),
    ]
)
GOODBYE = b"".join(
    [
        frames.disposition(0, 1, frames.state("accepted"), settled=False),
        frames.detach(0),
        frames.transfer(1, MESSAGE, handle=7, channel=3),
        frames.end(),
        frames.close(),
    ]
)


STAGES = (CONVERSATION, TRANSFERS, GOODBYE)  # the gateway takes its turns behind each


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    edges = [0, *sorted(cut % len(data) for cut in cuts), len(data)]
    return [data[begin:end] for begin, end in pairwise(edges)]


def talk(cuts: list[int]) -> list[list[object]]:
    """What the gateway says, by channel: how frames of two channels interleave is no one's business, nor is it how
    often it repeats its windows or how far a disposition reaches."""
    peer = Conversation(build_gateway(TABLES, ScriptedRealm()), begin=False)
    for data in STAGES:
        peer.say(data, cut=lambda whole: pieces(whole, cuts))
    channels = sorted({seen.channel for seen in peer.seen})
    return [[field for seen in peer.seen if seen.channel == channel for field in _fields(seen)] for channel in channels]


def _fields(seen: frames.Seen) -> list[object]:
    if seen.name == "flow":
        return []
    if seen.name == "disposition":
        last = seen.field(1) if seen.field(2) is None else seen.field(2)
        return [("disposition", number, seen.state, seen.field(3)) for number in range(seen.field(1), last + 1)]
    return [seen.comparable()]


WHOLE = talk([])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 10_000), max_size=12))
@example(list(range(10_000)))
def test_cut_anywhere_the_conversation_is_the_same(cuts: list[int]) -> None:
    assert talk(cuts) == WHOLE


def test_the_conversation_says_something() -> None:
    names = [frame[0] for channel in WHOLE for frame in channel]  # type: ignore[index]
    assert {"open", "begin", "attach", "detach", "transfer", "disposition", "end", "close"} <= set(names)


@settings(max_examples=150, deadline=None)
@given(st.binary(min_size=1, max_size=300), st.integers(0, 600), st.booleans())
def test_whatever_comes_only_the_connection_ends(noise: bytes, at: int, insert: bool) -> None:
    """Octets put in or written over: a close, an end, a detach or nothing, never an exception."""
    gateway = build_gateway(TABLES, ScriptedRealm())
    peer, bystander = Conversation(gateway), Conversation(gateway, "bystander")
    data = CONVERSATION[len(frames.AMQP_HEADER + frames.open_("peer") + frames.begin()) :] + TRANSFERS + GOODBYE
    peer.say(data[:at] + noise + data[at if insert else at + len(noise) :])
    peer.lose()
    bystander.say(frames.attach_sender("q", name="unharmed"))
    assert [seen.state for seen in bystander.say(frames.transfer(0, MESSAGE))] == ["accepted"]
    assert gateway.faults["assertion"] == 0
    assert gateway.outcomes.open == 0
