"""Whose the name of a link is: it is taken over when the newer attach is admitted, and only by the same user."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from mappings import load_tables
from native_backend.nodes.grants import Subject
from tests.kit.processes.gateway import GatewayProcess
from tests.kit.scenarios.environment import Environment
from tests.kit.wire import frames
from tests.kit.wire.filters import selector
from tests.kit.wire.peer import Peer
from tests.wire.attach.logged_in import command, login, serve_users

DENIED, LOCKED, NOT_FOUND = "amqp:unauthorized-access", "amqp:resource-locked", "amqp:not-found"
STOLEN = "amqp:link:stolen"
TABLES = load_tables()
_NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """Nodes with grants for alice, bob and who has no name; mallory has none."""
    groups = {"alice": "[team]", "bob": "[team]", "mallory": "[]"}
    for gateway in serve_users(tmp_path_factory.mktemp("names"), groups):
        for name, kind in (("orders", "queue"), ("others", "queue"), ("news", "channel")):
            command(gateway, "node", "create", name, "--kind", kind)
            for who in ("group:team", "user:anonymous"):
                command(gateway, "acl", "grant", who, "publish,subscribe,durable", "--node", name)
        yield gateway


@pytest.fixture
def peers() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def sender(address: str | None) -> bytes:
    return frames.attach_sender(address, 5, "mine")


def receiver(address: str, **source: Any) -> bytes:
    return frames.attach_receiver(frames.source(address, **source), 5, "mine")


def durable(address: str, **source: Any) -> bytes:
    return receiver(address, durable=2, **source)


KINDS: dict[str, tuple[Callable[..., bytes], str, str]] = {
    "publisher": (sender, "orders", "others"),
    "consumer": (receiver, "orders", "others"),
    "subscriber": (receiver, "news", "others"),
    "durable": (durable, "news", "orders"),
}
"""How the link attaches, to which node, and another node that is there."""


def attached(peer: Peer, attach: bytes) -> None:
    peer.send(attach)
    answer = peer.expect("attach")
    assert answer.field(6 if answer.field(2) is True else 5) is not None, answer


def goes_on(peer: Peer, kind: str, gateway: GatewayProcess, peers: ExitStack) -> bool:
    """Its link does what it is there for."""
    node = KINDS[kind][1]
    if kind == "publisher":
        [number] = peer.publish(frames.message(), handle=5)
        return peer.outcomes(1) == {number: "accepted"}
    peer.send(frames.flow(5, 1))
    publisher = login(peers, gateway, "alice")
    publisher.publisher(node, "channel" if node == "news" else "queue")
    publisher.publish(frames.message())
    publisher.outcomes(1)
    seen = peer.expect("transfer")
    peer.settle([seen.field(1)], frames.state("accepted"))
    return True


@pytest.mark.requirement("O-6")
@pytest.mark.parametrize("kind", KINDS)
def test_who_is_not_admitted_takes_no_name_over(gateway: GatewayProcess, peers: ExitStack, kind: str) -> None:
    """Neither of another user's, nor of its own; whether the node is there, or not, or may not be used."""
    attach, node, other = KINDS[kind]
    container = f"app-{next(_NUMBERS)}"
    alice, again = (login(peers, gateway, "alice", container) for _ in range(2))
    mallory, anonymous = login(peers, gateway, "mallory", container), peers.enter_context(Peer(gateway.port, container))
    attached(alice, attach(node))
    command(gateway, "node", "create", f"closed-{container}")
    command(gateway, "acl", "grant", "user:bob", "full", "--node", f"closed-{container}")
    for peer, to, condition in (
        (mallory, node, DENIED),
        (mallory, other, DENIED),
        (mallory, "missing", NOT_FOUND),
        (anonymous, "missing", NOT_FOUND),
        (again, "missing", NOT_FOUND),
        (again, f"closed-{container}", DENIED),
    ):
        peer.send(attach(to))
        assert peer.refused() == condition
        peer.send(frames.detach(5))
    assert goes_on(alice, kind, gateway, peers)
    alice.nothing()


@pytest.mark.requirement("O-6")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("named", [True, False], ids=["named", "anonymous"])
def test_another_user_is_refused_while_the_link_is_there(
    gateway: GatewayProcess, peers: ExitStack, kind: str, named: bool
) -> None:
    """Also one that may use the node, and also at another node: there is one link of a name. A durable stays its
    user's when the link has gone."""
    attach, node, other = KINDS[kind]
    container = f"app-{next(_NUMBERS)}"
    alice = login(peers, gateway, "alice", container)
    bob = login(peers, gateway, "bob", container) if named else peers.enter_context(Peer(gateway.port, container))
    attached(alice, attach(node))
    for to in (node, other):
        bob.send(attach(to))
        assert bob.refused() == LOCKED
        bob.send(frames.detach(5))
    assert goes_on(alice, kind, gateway, peers)
    alice.send(frames.close())
    alice.expect("close")
    if kind == "durable":
        bob.send(attach(node))
        assert bob.refused() == DENIED
        return
    attached(bob, attach(node))
    assert goes_on(bob, kind, gateway, peers)


@pytest.mark.requirement("O-6")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("named", [True, False], ids=["named", "anonymous"])
def test_the_same_user_takes_it_over(gateway: GatewayProcess, peers: ExitStack, kind: str, named: bool) -> None:
    """All who have no name are one user."""
    attach, node, _ = KINDS[kind]
    container = f"app-{next(_NUMBERS)}"
    old, new = (
        login(peers, gateway, "alice", container) if named else peers.enter_context(Peer(gateway.port, container))
        for _ in range(2)
    )
    attached(old, attach(node))
    attached(new, attach(node))
    assert old.expect("detach").condition == STOLEN
    assert goes_on(new, kind, gateway, peers)


REFUSED = {
    "the other kind": (durable("news", capability="shared"), "amqp:not-allowed"),
    "a broken selector": (
        durable("news", filters=selector("a = = 1")),
        "amqp:invalid-field",
    ),
    "a mode that is not": (receiver("news", mode="move"), "amqp:not-implemented"),
}


@pytest.mark.parametrize("attach", REFUSED)
def test_a_durable_stays_with_its_link_where_the_newer_one_is_refused(
    gateway: GatewayProcess, peers: ExitStack, attach: str
) -> None:
    container = f"app-{next(_NUMBERS)}"
    alice, again = (login(peers, gateway, "alice", container) for _ in range(2))
    attached(alice, durable("news"))
    octets, condition = REFUSED[attach]
    again.send(octets)
    assert again.refused() == condition
    assert goes_on(alice, "durable", gateway, peers)


def test_a_control_link_and_the_relay_have_names_of_their_users_too(gateway: GatewayProcess, peers: ExitStack) -> None:
    for attach in (frames.attach_sender(None, 5, "mine"), frames.attach_sender(frames.COORDINATOR, 5, "mine")):
        container = f"app-{next(_NUMBERS)}"
        alice, bob, again = (login(peers, gateway, user, container) for user in ("alice", "bob", "alice"))
        attached(alice, attach)
        bob.send(attach)
        assert bob.refused() == LOCKED
        alice.nothing()
        attached(again, attach)
        assert alice.expect("detach").condition == STOLEN


@pytest.mark.parametrize("answer", ["access-denied", "unexpected", "not-found", "indeterminate", "unavailable"])
@pytest.mark.parametrize("durability", [0, 2])
def test_what_the_realm_refuses_takes_no_name_over(answer: str, durability: int) -> None:
    env = Environment(TABLES)
    old, new = env.peer("app"), env.peer("app")
    where = frames.source("c", durability)
    old.say(frames.attach_receiver(where))
    env.realm.answers["subscribe"] = answer
    new.say(frames.attach_receiver(where))
    assert [seen.name for seen in new.listen() or new.seen[-2:]] == ["attach", "detach"]
    assert old.listen() == []
    env.realm.answers.clear()
    new.say(frames.detach(1), frames.attach_receiver(where))
    assert [(seen.name, seen.condition) for seen in old.listen()] == [("detach", STOLEN)]


def test_of_two_attaches_at_once_the_last_one_admitted_has_the_name() -> None:
    env = Environment(TABLES)
    env.realm.holds.add("subscribe")
    peers = [env.peer("app") for _ in range(2)]
    for peer in peers:
        assert peer.say(frames.attach_receiver("q")) == []
    env.realm.release()
    assert [seen.name for seen in peers[1].listen()] == ["attach"]
    peers[0].listen()
    assert [(seen.name) for seen in peers[0].seen[2:]] == ["attach", "detach"]
    assert peers[0].seen[-1].condition == STOLEN
    assert len(env.gateway.link_names) == 1


def test_another_users_durable_that_was_admitted_meanwhile_is_not_freed() -> None:
    """Both are asked about at once, and both users may have it: the second one is refused, as if it had come later."""
    env = Environment(TABLES)
    env.realm.holds.add("subscribe")
    alice, bob = env.peer("app"), env.peer("app")
    for peer, user, answer in ((alice, "alice", "ready"), (bob, "bob", "in-use")):
        peer.connection.subject = Subject(user)
        env.realm.answers["subscribe"] = answer
        assert peer.say(durable("c")) == []
    env.realm.answers.clear()
    env.realm.release()
    bob.listen()
    assert [seen.name for seen in bob.seen[2:]] == ["attach", "detach"]
    assert bob.seen[-1].condition == LOCKED
    alice.listen()
    assert [seen.name for seen in alice.seen[2:]] == ["attach"]
