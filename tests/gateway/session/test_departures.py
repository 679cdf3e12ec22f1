"""Many links that end together: a few in each turn, and all that was said before and behind them counts as ever."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.session.connection import Connection
from gateway.session.departures import TURN_EFFORT
from gateway.session.gateway import Gateway
from mappings import load_tables
from tests.kit.wire import frames
from tests.kit.wire.conversation import Conversation, build_gateway
from tests.kit.wire.scripted_realm import ScriptedRealm

TABLES = load_tables()
LINKS = 300
A_TURN = 64
"""Links that end in one turn."""


@pytest.fixture
def realm() -> ScriptedRealm:
    return ScriptedRealm()


@pytest.fixture
def gateway(realm: ScriptedRealm) -> Gateway:
    return build_gateway(TABLES, realm)


@pytest.fixture
def peer(gateway: Gateway) -> Conversation:
    """Many consumers on session 0; on session 1 a publisher to `p` and a consumer of `r`."""
    peer = Conversation(gateway)
    for handle in range(LINKS):
        peer.say(frames.attach_receiver("q", handle=handle, name=f"from-{handle}"))
    peer.say(frames.begin(1), frames.attach_sender("p", channel=1), frames.attach_receiver("r", channel=1))
    peer.say(frames.flow(1, 10, channel=1))
    return peer


def many_closed(realm: ScriptedRealm) -> int:
    return sum(subscription.closed for subscription in realm.subscriptions if subscription.node.name == "q")


def turns(peer: Conversation, realm: ScriptedRealm) -> list[int]:
    """How many of the many had ended after each turn, until all have."""
    ended: list[int] = []
    while not ended or ended[-1] < LINKS:
        assert len(ended) < LINKS, "some are left out"
        peer.gateway.poll()
        peer.read()
        ended.append(many_closed(realm))
    return ended


def names(peer: Conversation) -> list[str]:
    return [seen.name for seen in peer.seen]


def nothing_left(gateway: Gateway) -> bool:
    return not gateway.departures and not gateway.link_names and not gateway.shares.links.used


def test_links_of_a_session_end_in_turns_and_then_it_is_answered(peer: Conversation, realm: ScriptedRealm) -> None:
    peer.connection.receive(frames.end())
    assert many_closed(realm) == 0 and peer.read() == 0
    ended = turns(peer, realm)
    assert max(after - before for before, after in zip([0, *ended], ended, strict=False)) <= A_TURN
    assert len(ended) >= LINKS // A_TURN
    peer.listen()
    assert names(peer)[-1] == "end" and names(peer).count("end") == 1
    assert len(peer.gateway.link_names) == 2, "those of the other session stay"


def test_the_end_is_not_sent_before_the_last_link_has_ended(peer: Conversation, realm: ScriptedRealm) -> None:
    peer.connection.receive(frames.end())
    while many_closed(realm) < LINKS:
        assert "end" not in names(peer)
        peer.gateway.poll()
        peer.read()


def test_deliveries_count_as_links_do(gateway: Gateway, realm: ScriptedRealm) -> None:
    """Two links with as many unsettled deliveries as a turn gives back end in two turns."""
    peer = Conversation(gateway)
    realm.keep(realm.node("q"), [frames.message()] * 2 * TURN_EFFORT)
    for handle in (0, 1):
        peer.say(frames.attach_receiver("q", handle=handle, name=f"from-{handle}"), frames.flow(handle, TURN_EFFORT))
    assert names(peer).count("transfer") == 2 * TURN_EFFORT
    peer.connection.receive(frames.end())
    seen = []
    for _ in range(3):
        gateway.poll()
        seen.append(many_closed(realm))
    assert seen == [1, 2, 2]
    assert len(realm.store("q").available) == 2 * TURN_EFFORT, "all came back"


def test_what_came_behind_the_end_is_carried_out_behind_it(peer: Conversation, realm: ScriptedRealm) -> None:
    peer.connection.receive(frames.end() + frames.transfer(0, frames.message(), channel=1))
    assert "publish 1" not in realm.calls
    turns(peer, realm)
    peer.listen()
    assert "publish 1" in realm.calls
    assert names(peer)[-2:] == ["end", "disposition"]


def test_no_event_is_given_meanwhile(peer: Conversation, realm: ScriptedRealm) -> None:
    peer.connection.receive(frames.end())
    realm.keep(realm.node("r"), [frames.message()])
    turns(peer, realm)
    peer.listen()
    assert names(peer)[-2:] == ["end", "transfer"]


@pytest.mark.parametrize("sessions", [1, 2])
def test_one_that_hangs_up_meanwhile_is_heard_to_its_end(
    peer: Conversation, realm: ScriptedRealm, sessions: int
) -> None:
    """What came before the end of the socket counts: a message behind one END, or behind two of many links."""
    for handle in range(LINKS) if sessions == 2 else ():
        begin = [frames.begin(2)] if handle == 0 else []
        peer.say(*begin, frames.attach_receiver("t", handle=handle, name=f"other-{handle}", channel=2))
    last = [frames.end(2)] if sessions == 2 else []
    peer.connection.receive(b"".join([frames.end(), *last, frames.transfer(0, frames.message(), channel=1)]))
    peer.gateway.poll()
    peer.lose()
    assert many_closed(realm) < LINKS
    turns(peer, realm)
    peer.listen()
    assert "publish 1" in realm.calls
    assert nothing_left(peer.gateway)


def test_links_of_a_lost_connection_end_in_turns(peer: Conversation, realm: ScriptedRealm) -> None:
    peer.lose()
    ended = turns(peer, realm)
    assert max(after - before for before, after in zip([0, *ended], ended, strict=False)) <= A_TURN
    peer.listen()
    assert nothing_left(peer.gateway)
    assert all(subscription.closed for subscription in realm.subscriptions)


def test_attaches_that_wait_when_the_connection_closes_are_not_counted(
    peer: Conversation, realm: ScriptedRealm
) -> None:
    late = [frames.attach_receiver("q", handle=7 + at, name=f"late-{at}", channel=1) for at in range(9)]
    peer.connection.receive(b"".join([frames.end(), *late, frames.close()]))
    peer.listen()
    assert names(peer)[-1] == "close"
    assert nothing_left(peer.gateway)


def test_a_close_of_ours_is_sent_behind_the_ends(peer: Conversation, realm: ScriptedRealm) -> None:
    peer.connection.close("amqp:connection:forced", "a test")
    turns(peer, realm)
    peer.listen()
    assert names(peer).count("close") == 1 and names(peer)[-1] == "close"
    assert nothing_left(peer.gateway)


def test_a_name_is_free_for_who_comes_again_meanwhile(peer: Conversation, realm: ScriptedRealm) -> None:
    """A client that reconnects at once is not refused for links of its lost connection."""
    peer.lose()
    again = Conversation(peer.gateway)
    again.say(frames.attach_receiver("q", handle=0, name=f"from-{LINKS - 1}"))
    again.listen()
    assert names(again).count("attach") == 1 and "detach" not in names(again)
    assert len(peer.gateway.link_names) == 1


def test_a_gateway_that_stops_ends_all_at_once(peer: Conversation, realm: ScriptedRealm) -> None:
    peer.connection.receive(frames.end())
    peer.gateway.poll()
    assert many_closed(realm) < LINKS
    peer.gateway.stop()
    peer.gateway.close_connections()
    assert many_closed(realm) == LINKS
    assert nothing_left(peer.gateway)


@pytest.mark.parametrize("place", ["end_link", "resume"])
def test_a_mistake_of_ours_ends_that_connection_alone(
    peer: Conversation, realm: ScriptedRealm, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken: list[object] = []
    peer.gateway.on_broken = broken.append
    before = peer.gateway.faults["assertion"]
    original, calls = getattr(Connection, place), iter(range(LINKS))

    def mistaken(connection: Connection, *values: Any, **more: Any) -> Any:
        if connection is peer.connection and next(calls) == (LINKS // 2 if place == "end_link" else 0):
            raise AssertionError("a mistake")
        return original(connection, *values, **more)

    monkeypatch.setattr(Connection, place, mistaken)
    peer.connection.receive(frames.end() + frames.transfer(0, frames.message(), channel=1))
    other = Conversation(peer.gateway, "other")
    other.say(frames.attach_sender("p"))
    other.say(frames.transfer(0, frames.message()))
    assert names(other)[-1] == "disposition", "it is served"
    assert broken == [peer.connection] and peer.gateway.faults["assertion"] == before + 1
    assert not peer.gateway.departures and not peer.gateway.realm.mistakes.troubles.present()


def test_a_session_that_we_cut_ends_in_turns(peer: Conversation, realm: ScriptedRealm) -> None:
    """Its peer used a handle that is not attached (amqp:session:unattached-handle)."""
    peer.connection.receive(frames.transfer(0, frames.message(), handle=999))
    assert many_closed(realm) == 0
    turns(peer, realm)
    peer.listen()
    assert names(peer)[-1] == "end"
    assert peer.gateway.shares.links.used == 2, "those of the other session stay"
