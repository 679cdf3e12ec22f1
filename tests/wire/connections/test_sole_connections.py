"""A container's only connection, as JMS asks for it with a client id: who is refused, who goes, who is let alone."""

from __future__ import annotations

from typing import Any

import pytest

from mappings import load_tables
from native_backend.nodes.grants import Subject
from tests.kit.processes.gateway import GatewayProcess
from tests.kit.wire import frames
from tests.kit.wire.conversation import Conversation, build_gateway
from tests.kit.wire.frames import Seen
from tests.kit.wire.peer import Peer
from tests.kit.wire.scripted_realm import ScriptedRealm
from transformers.codec import AmqpMap, Array, Described

CAPABILITY = "sole-connection-for-container"
FAILED, DETECTION = "amqp:connection-establishment-failed", "sole-connection-detection-policy"
ENFORCEMENT = "sole-connection-enforcement-policy"
REFUSE, CLOSE_EXISTING = 0, 1


def connect(gateway: GatewayProcess, container: str, sole: int | None) -> tuple[Peer, Seen]:
    peer = Peer(gateway.port, container, begin=False)
    peer.send(frames.AMQP_HEADER, frames.open_(container, sole), frames.begin(), frames.attach_sender("any.sole"))
    return peer, peer.expect("open")


def properties(opened: Seen) -> dict[str, Any]:
    fields = opened.field(9)
    return {str(name): value for name, value in fields.pairs} if isinstance(fields, AmqpMap) else {}


def error(closed: Seen) -> tuple[str, dict[str, Any]]:
    described = closed.field(0)
    assert isinstance(described, Described)
    return str(described.value[0]), {str(name): value for name, value in described.value[2].pairs}


def refused(peer: Peer, opened: Seen) -> bool:
    if not properties(opened).get(FAILED):
        peer.expect("begin")
        peer.expect("attach")
        return False
    peer.expect("begin")
    assert error(peer.expect("close")) == ("amqp:invalid-field", {"invalid-field": "container-id"})
    peer.send(frames.close())
    assert peer.closed()
    return True


def test_it_is_offered(gateway: GatewayProcess) -> None:
    peer, opened = connect(gateway, "one", None)
    offered = opened.field(7)
    assert CAPABILITY in (offered.items if isinstance(offered, Array) else [offered])
    assert properties(opened) == {}
    peer.close()


@pytest.mark.parametrize("policy", [0, -1, 7])
def test_the_second_one_is_refused_until_the_first_has_gone(gateway: GatewayProcess, policy: int) -> None:
    container = f"refused-{policy}"
    first, opened = connect(gateway, container, policy)
    assert not refused(first, opened)
    assert properties(opened) == {DETECTION: 1, ENFORCEMENT: REFUSE}
    for _ in range(2):
        peer, opened = connect(gateway, container, policy)
        assert properties(opened) == {DETECTION: 1, ENFORCEMENT: REFUSE, FAILED: True}
        assert refused(peer, opened)
    first.send(frames.close())
    first.expect("close")
    again, opened = connect(gateway, container, policy)
    assert not refused(again, opened)
    again.reset()
    while refused(*connect(gateway, container, policy)):  # until the gateway has read that it went
        pass
    first.close()


def test_the_one_that_is_there_goes(gateway: GatewayProcess) -> None:
    peers = []
    for number in range(3):
        peer, opened = connect(gateway, "taken", 1)
        assert not refused(peer, opened)
        assert properties(opened) == {DETECTION: 1, ENFORCEMENT: CLOSE_EXISTING}
        peers.append(peer)
        if number:
            closed = peers[number - 1].expect("close")
            assert error(closed) == ("amqp:resource-locked", {"sole-connection-enforcement": True})
    assert refused(*connect(gateway, "taken", 0))
    for peer in peers:
        peer.close()


def test_who_does_not_ask_is_let_alone(gateway: GatewayProcess) -> None:
    first, _ = connect(gateway, "alone", None)
    second, opened = connect(gateway, "alone", 0)
    assert not refused(second, opened)
    third, opened = connect(gateway, "alone", None)
    assert not refused(third, opened)
    for peer in (first, second, third):
        peer.close()


def test_no_user_closes_another_users_connection() -> None:
    gateway = build_gateway(load_tables(None, "extended"), ScriptedRealm())
    peers = []
    for user in ("alice", "mallory", "alice"):
        peer = Conversation(gateway, begin=False)
        peer.connection.subject = Subject(user)
        peer.say(frames.AMQP_HEADER, frames.open_("mine", 1))
        peers.append(peer)
    first, other, second = ([seen.name for seen in peer.listen() or peer.seen] for peer in peers)
    assert other == ["open", "close"]
    assert properties(peers[1].seen[0]) == {DETECTION: 1, FAILED: True}, "the policy is not carried out"
    assert properties(peers[2].seen[0]) == {DETECTION: 1, ENFORCEMENT: CLOSE_EXISTING}
    assert second == ["open"]
    assert first[-1] == "close"
