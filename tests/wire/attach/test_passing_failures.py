"""A realm that cannot be asked for a moment, over a socket: links are refused for now, and attach once it can."""

from __future__ import annotations

import pytest

from mappings import load_tables
from tests.kit.wire import frames
from tests.kit.wire.peer import Peer
from tests.kit.wire.scripted_gateway import ScriptedGateway
from transformers.codec import Described

ATTACHES = {
    "publish": lambda handle: frames.attach_sender("q", handle, f"link {handle}"),
    "subscribe": lambda handle: frames.attach_receiver("q", handle, f"link {handle}"),
}


def refusal(peer: Peer) -> tuple[str, dict[str, object]]:
    """Condition and info map of a refused ATTACH."""
    attached, detached = peer.expect("attach"), peer.expect("detach")
    assert attached.field(5 if attached.field(2) is False else 6) is None, "no terminus"
    assert detached.field(1) is True
    error = detached.field(2)
    assert isinstance(error, Described)
    condition, _, info = error.value
    return str(condition), {str(key): value for key, value in info.pairs}


@pytest.mark.parametrize(
    ("direction", "step"), [("publish", "find"), ("subscribe", "find"), ("subscribe", "subscribe")]
)
def test_a_realm_that_cannot_be_asked_refuses_for_now(direction: str, step: str) -> None:
    with ScriptedGateway(load_tables()) as gateway, Peer(gateway.port) as peer:
        gateway.realm.answers[step] = "unavailable"
        peer.send(ATTACHES[direction](0))
        condition, info = refusal(peer)
        assert condition == "amqp:link:detach-forced"
        assert info["rule"] == "attached.unavailable-refused-for-now"
        assert info["native-code"] == "SCRIPTED" and info["retry-after-ms"] == 1000
        del gateway.realm.answers[step]
        peer.send(frames.detach(0), ATTACHES[direction](1))
        attached = peer.expect("attach")
        assert attached.field(5 if direction == "subscribe" else 6) is not None, "the session goes on, and it works"


@pytest.mark.parametrize("profile", ["um-9.9", "um-9.10", "um-9.12"])
def test_S_R1b_the_documented_server_has_one_answer_for_whatever_goes_wrong(profile: str) -> None:
    with ScriptedGateway(load_tables(profile=profile)) as gateway, Peer(gateway.port) as peer:
        gateway.realm.answers["find"] = "unavailable"
        peer.send(ATTACHES["subscribe"](0))
        condition, info = refusal(peer)
        assert condition == "amqp:internal-error" and "retry-after-ms" not in info
