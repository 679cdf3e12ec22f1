"""Access on the wire: rows S-R1a, S-R2a, P-R2a, by users that logged in; grants changed under living links."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.kit.patience import HANG_S
from tests.kit.processes.gateway import GatewayProcess
from tests.kit.rewriting import rewrite
from tests.kit.wire import frames
from tests.kit.wire.peer import Peer
from tests.wire.attach.logged_in import command, login, serve_users, write_users

DENIED = "amqp:unauthorized-access"
REJECTED = f"rejected:{DENIED}"
_NUMBERS = itertools.count()
GROUPS = {"alice": "[traders]", "bob": "[]", "carol": "[ops]"}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    yield from serve_users(tmp_path_factory.mktemp("access"), GROUPS)


@pytest.fixture
def peers(gateway: GatewayProcess) -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def node(gateway: GatewayProcess) -> str:
    """A queue that alice publishes to and bob consumes from."""
    name = f"orders.{next(_NUMBERS)}"
    command(gateway, "node", "create", name)
    command(gateway, "acl", "grant", "user:alice", "push", "--node", name)
    command(gateway, "acl", "grant", "user:bob", "subscribe", "--node", name)
    return name


def test_S_R1a_P_R2a_who_is_not_granted_is_refused_at_attach(
    gateway: GatewayProcess, peers: ExitStack, node: str
) -> None:
    alice, bob = login(peers, gateway, "alice"), login(peers, gateway, "bob")
    anonymous = peers.enter_context(Peer(gateway.port))
    alice.publisher(node)
    alice.publish(frames.message(b"for bob"))
    assert alice.outcomes(1) == {0: "accepted"}
    bob.consumer(node, credit=1)
    assert bob.receive(1)[0].payload == frames.message(b"for bob")
    for peer, attach in (
        (alice, frames.attach_receiver(node, 7)),
        (bob, frames.attach_sender(node, 7)),
        (anonymous, frames.attach_sender(node, 7)),
        (anonymous, frames.attach_receiver(node, 8)),
    ):
        peer.send(attach)
        assert peer.refused() == DENIED
    alice.publish(frames.message())
    assert alice.outcomes(1) == {1: "accepted"}, "its other link goes on"


def test_a_durable_needs_a_right_of_its_own_and_a_group_may_have_it(gateway: GatewayProcess, peers: ExitStack) -> None:
    command(gateway, "node", "create", "prices", "--kind", "channel")
    command(gateway, "acl", "grant", "*", "subscribe,publish", "--node", "prices")
    command(gateway, "acl", "grant", "group:traders", "named", "--node", "prices")
    alice, bob = login(peers, gateway, "alice"), login(peers, gateway, "bob")
    durable = frames.source("prices", durable=2)
    alice.consumer(durable, credit=1)
    bob.send(frames.attach_receiver(durable, 4, "durably"))
    assert bob.refused() == DENIED
    bob.consumer("prices", credit=1)
    publisher = login(peers, gateway, "bob")
    publisher.publisher("prices", "channel")
    publisher.publish(frames.message())
    assert alice.receive(1) and bob.receive(1)


@pytest.mark.requirement("H-6")
def test_S_R1a_a_consumer_whose_right_is_revoked_is_rejected_and_its_events_go_to_another(
    gateway: GatewayProcess, peers: ExitStack, node: str
) -> None:
    alice, bob, carol = (login(peers, gateway, user) for user in ("alice", "bob", "carol"))
    alice.publisher(node)
    alice.publish(frames.message(b"1"), frames.message(b"2"), frames.message(b"3"))
    alice.outcomes(3)
    bob.consumer(node, credit=3)
    assert len(bob.receive(3)) == 3
    bob.settle([0], frames.state("accepted"), settled=False)
    assert bob.outcomes(1) == {0: "accepted"}
    command(gateway, "acl", "grant", "group:ops", "pop", "--node", node)
    command(gateway, "acl", "revoke", "user:bob", "--node", node)
    assert bob.outcomes(2) == {1: REJECTED, 2: REJECTED}
    assert bob.detached(1) == DENIED
    carol.consumer(node, credit=3)
    assert [seen.payload for seen in carol.receive(2)] != []
    bob.send(frames.detach(1), frames.attach_receiver(node, 5, "again"))
    assert bob.refused() == DENIED


@pytest.mark.parametrize("settled", [False, True])
def test_P_R2a_a_publisher_whose_right_is_revoked_hears_of_it_with_its_next_message(
    gateway: GatewayProcess, peers: ExitStack, node: str, settled: bool
) -> None:
    alice = login(peers, gateway, "alice")
    alice.publisher(node)
    alice.publish(frames.message(b"before"))
    assert alice.outcomes(1) == {0: "accepted"}
    command(gateway, "acl", "revoke", "user:alice", "publish", "--node", node)
    bob = login(peers, gateway, "bob")
    bob.consumer(node, credit=9)  # its attach reads metadata to the end, so the gateway knows by now
    bob.receive(1)
    alice.publish(frames.message(b"after"), settled=settled)
    if not settled:
        assert alice.outcomes(1) == {1: REJECTED}
    assert alice.detached(0) == DENIED
    bob.nothing()


def test_a_publisher_that_is_granted_again_goes_on(gateway: GatewayProcess, peers: ExitStack, node: str) -> None:
    alice, bob = login(peers, gateway, "alice"), login(peers, gateway, "bob")
    alice.publisher(node)
    command(gateway, "acl", "revoke", "user:alice", "publish", "--node", node)
    bob.consumer(node, credit=1)
    command(gateway, "acl", "grant", "group:traders", "publish", "--node", node)
    bob.consumer(node, credit=1, handle=2, name="other")
    alice.publish(frames.message())
    assert alice.outcomes(1) == {0: "accepted"}


def test_only_who_manages_the_realm_makes_nodes(gateway: GatewayProcess, peers: ExitStack) -> None:
    login(peers, gateway, "bob").publisher("any.open")
    command(gateway, "acl", "grant", "user:carol", "full", "--realm")
    try:
        bob = login(peers, gateway, "bob")
        for name in ("any.new", "any.open"):
            bob.send(frames.attach_sender(name, 0))
            assert bob.refused() == DENIED
            bob.send(frames.detach(0))
        bob.send(frames.attach_sender("no such node", 0))
        assert bob.refused() == "amqp:not-found"
        login(peers, gateway, "carol").publisher("any.new")
        bob.send(frames.attach_sender(None, 1, "relay"))
        bob.expect("attach")
        bob.publish(frames.message_to("any.relayed"), handle=1)
        assert bob.outcomes(1) == {0: REJECTED}, "nor by a message"
        carol = login(peers, gateway, "carol")
        carol.send(frames.attach_sender(None, 1, "relay"))
        carol.expect("attach")
        carol.publish(frames.message_to("any.relayed"), handle=1)
        assert carol.outcomes(1) == {0: "accepted"}
    finally:
        command(gateway, "acl", "revoke", "user:carol", "--realm", "--open")
    login(peers, gateway, "bob").publisher("any.newer")


def test_groups_and_users_change_while_serving(gateway: GatewayProcess, peers: ExitStack) -> None:
    command(gateway, "node", "create", "staff")
    command(gateway, "acl", "grant", "group:traders", "publish", "--node", "staff")
    command(gateway, "acl", "grant", "group:ops", "subscribe", "--node", "staff")
    alice, carol = login(peers, gateway, "alice"), login(peers, gateway, "carol")
    alice.publisher("staff")
    carol.consumer("staff", credit=1)
    file = gateway.config_path.with_name("users.yaml")
    try:
        rewrite(file, "users: {alice: {scram: [broken]}}\n")
        until(gateway, "this users file is not used")
        alice.publish(frames.message(b"1"))
        assert alice.outcomes(1) == {0: "accepted"}, "a file with problems changes nothing"
        carol.receive(1)
        write_users(file, {"alice": "[]", "carol": "[other]"})
        assert carol.expect("disposition").state == REJECTED
        assert carol.detached(1) == DENIED
        alice.publish(frames.message(b"2"))
        assert alice.outcomes(1) == {1: REJECTED}
        write_users(file, {"carol": "[ops]"})
        assert alice.expect("detach").condition == DENIED
        assert alice.expect("close").fields[0].value[0] == DENIED
        carol.send(frames.detach(1))
        carol.consumer("staff", credit=1, handle=2, name="again")
        assert carol.receive(1, handle=2)[0].payload == frames.message(b"1")
    finally:
        write_users(file, GROUPS)
        until(gateway, f"the users file was read: {len(GROUPS)} users", 2)


def until(gateway: GatewayProcess, words: str, times: int = 1) -> None:
    """The gateway has logged these words so often."""
    deadline = time.monotonic() + HANG_S
    while gateway.log_path.read_text().count(words) < times:
        assert time.monotonic() < deadline, gateway.log()
        time.sleep(0.05)


def test_the_command_says_what_holds(gateway: GatewayProcess, node: str) -> None:
    assert command(gateway, "acl", "list", "--node", node) == "user:alice  publish\nuser:bob  subscribe\n"
    command(gateway, "acl", "grant", "group:ops", "full", "--realm")
    try:
        every = "any-durable,durable,manage,peek,publish,purge,subscribe,temporary"
        listed = command(gateway, "acl", "list", "--node", node)
        assert f"from the realm:\ngroup:ops  {every}\n" in listed
        assert (
            command(gateway, "acl", "check", "alice", "push", "--node", node)
            == f"publish: yes, by user:alice on node '{node}'\n"
        )
        assert (
            command(gateway, "acl", "check", "carol", "purge", "--node", node)
            == "purge: yes, by group:ops on the realm\n"
        )
        with pytest.raises(RuntimeError, match=r"failed \(1\)"):
            command(gateway, "acl", "check", "bob", "publish,subscribe", "--node", node)
    finally:
        command(gateway, "acl", "revoke", "group:ops", "--realm", "--open")
    assert command(gateway, "acl", "list", "--realm") == "no grants: every user may do everything\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["grant", "alice", "publish"], "write user:NAME, group:NAME or"),
        (["grant", "user:alice", "publsh"], "there is no operation 'publsh'"),
        (["check", "mallory", "publish"], "there is no user 'mallory'"),
    ],
)
def test_the_command_refuses(gateway: GatewayProcess, node: str, words: list[str], message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        command(gateway, "acl", *words, "--node", node)


def test_the_last_grant_is_not_revoked_by_mistake(gateway: GatewayProcess, node: str) -> None:
    command(gateway, "acl", "revoke", "user:bob", "--node", node)
    with pytest.raises(RuntimeError, match="without grants is open to all users: grant first, or use --open"):
        command(gateway, "acl", "revoke", "user:alice", "--node", node)
    assert command(gateway, "acl", "list", "--node", node) == "user:alice  publish\n"
    command(gateway, "acl", "revoke", "user:alice", "--node", node, "--open")
    with pytest.raises(RuntimeError, match="there is no node"):
        command(gateway, "acl", "grant", "user:alice", "full", "--node", "nowhere")
