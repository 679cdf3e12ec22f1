"""A durable belongs to the user who made it: another user's link of the same container-id and name is refused, and gets
none of its messages. By users that log in to a real gateway, and by peers without a login."""

from __future__ import annotations

import itertools
import json
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.kit.processes.gateway import GatewayProcess, embedded_realm, kafka_realm, start_gateway
from tests.kit.wire import frames
from tests.kit.wire.peer import Peer
from tests.wire.attach.logged_in import command, login, write_users

DENIED = "amqp:unauthorized-access"
LINK = "dsub"
SENT = [frames.message(str(at).encode()) for at in range(5)]
_NUMBERS = itertools.count()


def serve(directory: Path, realm: dict[str, Any], profile: str) -> Iterator[GatewayProcess]:
    """Users alice and bob, and peers without a login."""
    write_users(directory / "users.yaml", {"alice": "[]", "bob": "[ops]"})
    security = {"sasl": ["PLAIN"], "users": "users.yaml", "plain_without_tls": True, "bare_amqp": True}
    gateway = start_gateway(directory, realm, security=security, mappings={"profile": profile})
    yield gateway
    gateway.end_well()


@pytest.fixture(scope="module", params=["embedded", "kafka"])
def gateway(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    directory = tmp_path_factory.mktemp("owners")
    if request.param == "kafka":
        realm = kafka_realm(request.getfixturevalue("kafka_bootstrap"), f"t{uuid.uuid4().hex[:8]}")
    else:
        realm = embedded_realm(directory)
    yield from serve(directory, realm, "extended")


@pytest.fixture
def peers() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


class World:
    """A channel on two stores, and a container-id that several users have."""

    def __init__(self, gateway: GatewayProcess, peers: ExitStack) -> None:
        number = next(_NUMBERS)
        self.gateway, self.peers = gateway, peers
        self.node, self.container = f"news.{number}", f"a-container-{number}"
        self.source = frames.source(self.node, durable=2)
        command(gateway, "node", "create", self.node, "--kind", "channel", "--partitions", "2")

    def of(self, user: str = "") -> Peer:
        """A connection of that user's, or one without a login."""
        if user:
            return login(self.peers, self.gateway, user, self.container)
        return self.peers.enter_context(Peer(self.gateway.port, self.container))

    def begin(self, peer: Peer) -> None:
        """Its durable, with five messages in it, and no link."""
        peer.consumer(self.source, name=LINK)
        leave(peer)
        self.publish(peer)

    def publish(self, peer: Peer) -> None:
        peer.stored(self.node, *SENT, kind="channel")

    def got(self, peer: Peer) -> list[bytes]:
        """All that its durable has, which is five messages."""
        peer.consumer(self.source, credit=len(SENT) + 1, name=LINK)
        seen = peer.receive(len(SENT))
        peer.nothing()
        peer.settle([event.field(1) for event in seen], frames.state("accepted"), settled=False)
        assert set(peer.outcomes(len(SENT)).values()) == {"accepted"}
        leave(peer)
        return sorted(event.payload for event in seen)

    def refused(self, peer: Peer, recalls: bool = False) -> tuple[str | None, str]:
        """Condition and description of the answer to its link. `recalls`: one without a source, as JMS unsubscribes."""
        peer.send(frames.attach_without_source(LINK) if recalls else frames.attach_receiver(self.source, 1, LINK))
        attached, detached = peer.expect("attach"), peer.expect("detach")
        assert attached.field(5) is None, attached
        peer.send(frames.detach(1))
        return detached.condition, detached.field(2).value[1]

    def owner(self) -> str | None:
        listed = json.loads(command(self.gateway, "durable", "list", self.node, "--json"))
        assert {entry["durable"] for entry in listed} == {f"{self.container}:{LINK}"}
        [owner] = {entry["owner"] for entry in listed}
        return str(owner) if owner is not None else None


def leave(peer: Peer) -> None:
    """The link is detached, not closed: its durable stays."""
    peer.send(frames.detach(1, closed=False))
    assert peer.expect("detach").condition is None


def test_another_user_gets_none_of_its_messages_nor_deletes_it(gateway: GatewayProcess, peers: ExitStack) -> None:
    world = World(gateway, peers)
    world.begin(world.of("alice"))
    for user in ("bob", ""):
        for recalls in (False, True):
            condition, words = world.refused(world.of(user), recalls)
            assert condition == DENIED
            assert "only the user who made this durable may use it" in words and "alice" not in words
    assert world.owner() == "alice"
    gateway.restart()
    assert world.refused(world.of("bob"))[0] == DENIED
    assert world.got(world.of("alice")) == sorted(SENT)


def test_a_grant_lets_another_user_in_and_an_operator_deletes_it(gateway: GatewayProcess, peers: ExitStack) -> None:
    world = World(gateway, peers)
    world.begin(world.of("alice"))
    command(gateway, "acl", "grant", "*", "publish,subscribe,durable", "--node", world.node)
    with pytest.raises(RuntimeError, match=r"failed \(1\)"):
        command(gateway, "acl", "check", "bob", "any-durable", "--node", world.node)
    assert world.refused(world.of("bob"))[0] == DENIED
    command(gateway, "acl", "grant", "group:ops", "any-durable", "--node", world.node)
    assert world.got(world.of("bob")) == sorted(SENT)
    assert " alice " in command(gateway, "durable", "list", world.node)
    command(gateway, "durable", "delete", world.node, f"{world.container}:{LINK}", "--yes")
    world.begin(world.of("bob"))
    assert world.owner() == "bob"
    assert world.refused(world.of("alice"))[0] == DENIED


def test_without_a_login_it_stays_open_until_a_user_with_one_takes_it(
    gateway: GatewayProcess, peers: ExitStack
) -> None:
    world = World(gateway, peers)
    with pytest.raises(RuntimeError, match=r"failed \(1\)"):
        command(gateway, "acl", "check", "bob", "any-durable", "--node", world.node)
    world.begin(world.of())
    assert world.owner() is None
    assert world.got(world.of()) == sorted(SENT), "all without a login are one user"
    world.publish(world.of())
    assert world.got(world.of("bob")) == sorted(SENT)
    assert world.owner() == "bob"
    assert world.refused(world.of())[0] == DENIED


def test_in_a_documented_profile_every_user_may_use_it(tmp_path: Path, peers: ExitStack) -> None:
    for gateway in serve(tmp_path, embedded_realm(tmp_path), "um-9.12"):
        world = World(gateway, peers)
        world.begin(world.of("alice"))
        assert world.got(world.of("bob")) == sorted(SENT)
        assert world.owner() is None
