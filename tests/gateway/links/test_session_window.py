"""Consumers whose peer's session takes no more transfers: what they wait for, whose turn it is when the window opens,
and that no event which was given back goes out behind it. Transfer frames are counted from the session's begin."""

from __future__ import annotations

import pytest

from gateway.session.gateway import Gateway
from mappings import load_tables
from tests.kit.scenarios.environment import Environment
from tests.kit.wire import frames
from tests.kit.wire.conversation import Conversation, build_gateway
from tests.kit.wire.frames import Seen
from tests.kit.wire.scripted_realm import ScriptedRealm

TABLES = load_tables()
SMALL = frames.message(b"small")
MALFORMED = b"\x00\x53\x79\x40"  # no section of a message has that code
WAYS = {
    "malformed-message": (frames.transfer(0, MALFORMED), "amqp:decode-error"),
    "unattached-handle": (frames.transfer(0, SMALL, handle=9), "amqp:session:unattached-handle"),
}


def names(seen: list[Seen]) -> list[str]:
    return [frame.name for frame in seen]


def payloads(seen: list[Seen]) -> list[bytes]:
    return [frame.payload for frame in seen if frame.name == "transfer"]


def queue_of(*messages: bytes) -> tuple[Gateway, ScriptedRealm]:
    realm = ScriptedRealm()
    realm.keep(realm.node("q"), [*messages])
    return build_gateway(TABLES, realm), realm


def small_frames(gateway: Gateway) -> Conversation:
    """A peer that takes frames of 512 octets."""
    peer = Conversation(gateway, begin=False)
    peer.say(frames.AMQP_HEADER, frames.open_(frame_size=512), frames.begin())
    return peer


@pytest.mark.requirement("P-5")
@pytest.mark.parametrize("way", WAYS)
def test_P_5_a_session_without_room_for_more_ends_at_once(way: str) -> None:
    env = Environment(TABLES)
    env.store("q", 4)
    peer, (fault, condition) = env.peer("both"), WAYS[way]
    peer.say(frames.attach_sender("q", 0), frames.attach_receiver("q", 1))
    assert names(peer.say(frames.flow(1, 4, window=2))) == ["transfer"] * 2
    *_, end = peer.say(fault)
    assert (end.name, end.condition) == ("end", condition)
    other = env.peer("other")
    assert names(other.say(frames.attach_receiver("q"), frames.flow(1, 5)))[1:] == ["transfer"] * 4
    assert not peer.say(frames.session_window(2, 100), frames.flow(1, 4, window=100)), "it has ended"
    assert names(peer.say(frames.end(), frames.begin())) == ["begin"]


def test_who_lost_its_right_gets_its_detach_at_once_and_no_event_when_the_window_opens() -> None:
    env = Environment(TABLES)
    env.store("q", 4)
    peer = env.peer("revoked")
    attached, *events = peer.say(frames.attach_receiver("q"), frames.flow(1, 4, window=2))
    assert len(events) == 2
    env.realm.lose_subscriptions("access-denied")
    *_, detach = peer.listen()
    assert (detach.name, detach.field(0), detach.field(1)) == ("detach", attached.field(1), True)
    assert detach.condition == "amqp:unauthorized-access"
    other = env.peer("other")
    taken = other.say(frames.attach_receiver("q"), frames.flow(1, 5))[1:]
    assert [seen.field(2) for seen in taken] == [b"4711:3", b"4711:4"]
    assert not payloads(peer.say(frames.session_window(2, 100)))
    assert names(peer.say(frames.detach(1), frames.end())) == ["end"]


@pytest.mark.parametrize("handle", [None, 1, 2, 3], ids=["session", "first", "second", "third"])
def test_links_of_one_session_take_turns_at_its_window(handle: int | None) -> None:
    """However it opens, and whichever link the flow is about."""
    gateway, _ = queue_of(*[SMALL] * 100)
    peer = Conversation(gateway)
    got = dict.fromkeys((1, 2, 3), 0)
    ours = {peer.say(frames.attach_receiver("q", at, f"sub-{at}"))[0].field(1): at for at in got}
    peer.say(frames.flow(1, 100, window=0), frames.flow(2, 100, window=0), frames.flow(3, 100, window=0))
    for window in range(1, 31):
        opened = [frames.session_window(0, window)]
        if handle is not None:
            opened = [frames.flow(handle, 100 - got[handle], got[handle], window=window)]
        (event,) = peer.say(*opened)
        got[ours[event.field(0)]] += 1
    assert got == {1: 10, 2: 10, 3: 10}
    wide = peer.say(frames.session_window(0, 60))
    assert len(wide) == 30
    assert not gateway.ready, "no link is visited while none may send"


def test_a_session_whose_window_is_used_up_holds_up_no_other() -> None:
    gateway, _ = queue_of(*[SMALL] * 5)
    peer = Conversation(gateway)
    peer.say(frames.begin(1), frames.attach_receiver("q", 1), frames.attach_receiver("q", 1, "other", channel=1))
    assert not peer.say(frames.flow(1, 5, window=0))
    assert names(peer.say(frames.flow(1, 3, channel=1))) == ["transfer"] * 3
    assert names(peer.say(frames.session_window(0, 9))) == ["transfer"] * 2


def test_a_link_that_ends_while_it_waits_leaves_its_turn_to_the_next() -> None:
    gateway, _ = queue_of(*[SMALL] * 5)
    peer = Conversation(gateway)
    for handle in (1, 2):
        peer.say(frames.attach_receiver("q", handle, f"sub-{handle}"), frames.flow(handle, 5, window=0))
    assert names(peer.say(frames.detach(1))) == ["detach"]
    assert names(peer.say(frames.session_window(0, 3))) == ["transfer"] * 3
    assert names(peer.say(frames.end())) == ["end"]
    assert gateway.faults["assertion"] == 0


def test_messages_of_several_frames_take_no_more_than_the_window() -> None:
    """One of them is half sent, and the next link begins when that is whole."""
    messages = [frames.message(bytes([at]) * 1_200) for at in range(6)]
    gateway, _ = queue_of(*messages)
    peer = small_frames(gateway)
    for handle in (1, 2):
        peer.say(frames.attach_receiver("q", handle, f"sub-{handle}"), frames.flow(handle, 3, window=0))
    seen: list[Seen] = []
    for window in range(1, 40):
        seen += peer.say(frames.session_window(0, window))
        assert len(seen) <= window
    assert names(seen) == ["transfer"] * 18
    whole = [b"".join(payloads(seen[at : at + 3])) for at in range(0, 18, 3)]
    assert whole == messages
    assert all(len({seen[at + part].field(0) for part in range(3)}) == 1 for at in range(0, 18, 3))


def test_a_window_for_many_small_messages_is_used_up_at_once() -> None:
    gateway, _ = queue_of(*[SMALL] * 50)
    peer = Conversation(gateway)
    assert names(peer.say(frames.attach_receiver("q"), frames.flow(1, 50, window=40)))[1:] == ["transfer"] * 40
    assert names(peer.say(frames.session_window(0, 50))) == ["transfer"] * 10


@pytest.mark.requirement("P-5")
@pytest.mark.parametrize("settled", [False, True], ids=["unsettled", "settled"])
@pytest.mark.parametrize("credit", [1, 0], ids=["with-credit", "its-credit-taken"])
@pytest.mark.parametrize("way", WAYS)
def test_P_5_a_session_ends_at_once_though_a_message_is_half_sent(way: str, credit: int, settled: bool) -> None:
    """Nothing more of that message goes out; the connection and its other session go on."""
    gateway, _ = queue_of(frames.message(bytes(200_000)), SMALL)
    peer, (fault, condition) = small_frames(gateway), WAYS[way]
    peer.say(frames.begin(1), frames.attach_receiver("q", 1, "other", channel=1))
    peer.say(frames.attach_sender("q", 0), frames.attach_receiver("q", 1, mode=int(settled)))
    assert names(peer.say(frames.flow(1, 1, window=7))) == ["transfer"] * 7
    assert not peer.say(frames.flow(1, credit, window=7))
    *before, end = peer.say(fault)
    assert (end.name, end.channel, end.condition) == ("end", 0, condition)
    assert set(names(before)) <= {"disposition", "detach"}
    assert not peer.say(frames.session_window(7, 1_000), frames.flow(1, 1, window=1_000)), "it has ended"
    assert "transfer" in names(peer.say(frames.flow(1, 2, channel=1)))
    assert names(peer.say(frames.end(), frames.begin(), frames.attach_receiver("q"))) == ["begin", "attach"]
    assert gateway.faults["assertion"] == 0
    peer.say(frames.close())
    assert peer.seen[-1].name == "close"


@pytest.mark.requirement("P-5")
def test_P_5_a_session_ends_at_once_though_a_link_of_it_has_ended_in_the_middle_of_a_message() -> None:
    gateway, realm = queue_of(frames.message(bytes(5_000)))
    peer = small_frames(gateway)
    peer.say(frames.attach_sender("q", 0), frames.attach_receiver("q", 1), frames.flow(1, 1, window=3))
    realm.lose_subscriptions("access-denied")
    peer.listen()
    *_, end = peer.say(WAYS["unattached-handle"][0])
    assert (end.name, end.condition) == ("end", "amqp:session:unattached-handle")
    assert not peer.say(frames.session_window(3, 1_000))


def test_of_a_message_half_sent_to_who_lost_its_right_nothing_more_goes_out() -> None:
    """It is aborted, for which the session must have room."""
    gateway, realm = queue_of(frames.message(bytes(5_000)))
    peer = small_frames(gateway)
    peer.say(frames.attach_receiver("q", 1), frames.attach_receiver("q", 2, "other"), frames.flow(1, 1, window=3))
    realm.lose_subscriptions("access-denied")
    peer.listen()
    aborted, detach = peer.say(frames.session_window(3, 1))
    assert (aborted.name, aborted.field(9), aborted.payload) == ("transfer", True, b"")
    assert (detach.name, detach.condition) == ("detach", "amqp:unauthorized-access")
    assert names(peer.say(frames.detach(1), frames.end(), frames.close())) == ["end", "close"]
    assert gateway.faults["assertion"] == 0
