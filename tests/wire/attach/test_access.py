"""Access on the wire: rows S-R1a, S-R2a, P-R2a, by users that logged in; grants changed under living links."""

from __future__ import annotations

import io
import itertools
import time
from collections.abc import Iterator
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from gateway import cli
from gateway.passwords import hash_password
from gateway.sasl import AMQP_HEADER, SASL_HEADER
from tests.gateway_process import GatewayProcess, embedded_realm, start_gateway
from tests.patience import HANG_S
from tests.rewriting import rewrite
from tests.wire import frames
from tests.wire.peer import Peer
from transformers.amqp_types import Described, Symbol, encode

DENIED = "amqp:unauthorized-access"
REJECTED = f"rejected:{DENIED}"
PASSWORD = "open sesame"
_NUMBERS = itertools.count()
GROUPS = {"alice": "[traders]", "bob": "[]", "carol": "[ops]"}


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    directory = tmp_path_factory.mktemp("access")
    write_users(directory / "users.yaml", GROUPS)
    security = {"sasl": ["PLAIN"], "users": "users.yaml", "plain_without_tls": True, "bare_amqp": True}
    nodes = {"create_on_attach": ["any.*"]}
    gateway = start_gateway(directory, embedded_realm(directory), security=security, nodes=nodes)
    yield gateway
    assert gateway.stop() == 0, gateway.log()
    assert "Traceback" not in gateway.log(), gateway.log()


def write_users(file: Path, groups: dict[str, str]) -> None:
    entry = hash_password(PASSWORD, "SCRAM-SHA-256", 4096)
    users = "".join(f'  {name}: {{groups: {of}, scram: ["{entry}"]}}\n' for name, of in groups.items())
    rewrite(file, f"users:\n{users}")


@pytest.fixture
def peers(house: GatewayProcess) -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def command(house: GatewayProcess, *words: str) -> str:
    """What `realmgate` prints; RuntimeError with what it complains of. In this process: it starts sooner."""
    out, complaints = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(complaints):
        code = cli.run([*words, "--config", str(house.config_path)])
    if code != 0:
        raise RuntimeError(f"failed ({code}): {complaints.getvalue()}")
    return out.getvalue()


def login(peers: ExitStack, house: GatewayProcess, user: str) -> Peer:
    """A connection of the user's, with one session."""
    peer = peers.enter_context(Peer(house.port, begin=False))
    body = encode(Described(0x41, [Symbol("PLAIN"), f"\0{user}\0{PASSWORD}".encode()]))
    peer.send(SASL_HEADER, (8 + len(body)).to_bytes(4, "big") + b"\x02\x01\0\0" + body, AMQP_HEADER)
    read = b""
    while not read.endswith(AMQP_HEADER):  # SASL's frames, then the header that answers ours
        read += peer._socket.recv(1024)
    peer.send(frames.open_(peer.container), frames.begin())
    peer.expect("open")
    peer.expect("begin")
    return peer


@pytest.fixture
def node(house: GatewayProcess) -> str:
    """A queue that alice publishes to and bob consumes from."""
    name = f"orders.{next(_NUMBERS)}"
    command(house, "node", "create", name)
    command(house, "acl", "grant", "user:alice", "push", "--node", name)
    command(house, "acl", "grant", "user:bob", "subscribe", "--node", name)
    return name


def test_S_R1a_P_R2a_who_is_not_granted_is_refused_at_attach(
    house: GatewayProcess, peers: ExitStack, node: str
) -> None:
    alice, bob = login(peers, house, "alice"), login(peers, house, "bob")
    nobody = peers.enter_context(Peer(house.port))
    alice.publisher(node)
    alice.publish(frames.message(b"for bob"))
    assert alice.outcomes(1) == {0: "accepted"}
    bob.consumer(node, credit=1)
    assert bob.receive(1)[0].payload == frames.message(b"for bob")
    for peer, attach in (
        (alice, frames.attach_receiver(node, 7)),
        (bob, frames.attach_sender(node, 7)),
        (nobody, frames.attach_sender(node, 7)),
        (nobody, frames.attach_receiver(node, 8)),
    ):
        peer.send(attach)
        assert peer.refused() == DENIED
    alice.publish(frames.message())
    assert alice.outcomes(1) == {1: "accepted"}, "its other link goes on"


def test_a_durable_needs_a_right_of_its_own_and_a_group_may_have_it(house: GatewayProcess, peers: ExitStack) -> None:
    command(house, "node", "create", "prices", "--kind", "channel")
    command(house, "acl", "grant", "*", "subscribe,publish", "--node", "prices")
    command(house, "acl", "grant", "group:traders", "named", "--node", "prices")
    alice, bob = login(peers, house, "alice"), login(peers, house, "bob")
    durable = frames.source("prices", durable=2)
    alice.consumer(durable, credit=1)
    bob.send(frames.attach_receiver(durable, 4, "durably"))
    assert bob.refused() == DENIED
    bob.consumer("prices", credit=1)
    publisher = login(peers, house, "bob")
    publisher.publisher("prices", "channel")
    publisher.publish(frames.message())
    assert alice.receive(1) and bob.receive(1)


@pytest.mark.requirement("H-6")
def test_S_R1a_a_consumer_whose_right_is_revoked_is_rejected_and_its_events_go_to_another(
    house: GatewayProcess, peers: ExitStack, node: str
) -> None:
    alice, bob, carol = (login(peers, house, user) for user in ("alice", "bob", "carol"))
    alice.publisher(node)
    alice.publish(frames.message(b"1"), frames.message(b"2"), frames.message(b"3"))
    alice.outcomes(3)
    bob.consumer(node, credit=3)
    assert len(bob.receive(3)) == 3
    bob.settle([0], frames.state("accepted"), settled=False)
    assert bob.outcomes(1) == {0: "accepted"}
    command(house, "acl", "grant", "group:ops", "pop", "--node", node)
    command(house, "acl", "revoke", "user:bob", "--node", node)
    assert bob.outcomes(2) == {1: REJECTED, 2: REJECTED}
    assert bob.detached(1) == DENIED
    carol.consumer(node, credit=3)
    assert [seen.payload for seen in carol.receive(2)] != []
    bob.send(frames.detach(1), frames.attach_receiver(node, 5, "again"))
    assert bob.refused() == DENIED


@pytest.mark.parametrize("settled", [False, True])
def test_P_R2a_a_publisher_whose_right_is_revoked_is_told_by_its_next_message(
    house: GatewayProcess, peers: ExitStack, node: str, settled: bool
) -> None:
    alice = login(peers, house, "alice")
    alice.publisher(node)
    alice.publish(frames.message(b"before"))
    assert alice.outcomes(1) == {0: "accepted"}
    command(house, "acl", "revoke", "user:alice", "publish", "--node", node)
    bob = login(peers, house, "bob")
    bob.consumer(node, credit=9)  # its attach reads metadata to the end, so the gateway knows by now
    bob.receive(1)
    alice.publish(frames.message(b"after"), settled=settled)
    if not settled:
        assert alice.outcomes(1) == {1: REJECTED}
    assert alice.detached(0) == DENIED
    bob.nothing()


def test_a_publisher_that_is_granted_again_goes_on(house: GatewayProcess, peers: ExitStack, node: str) -> None:
    alice, bob = login(peers, house, "alice"), login(peers, house, "bob")
    alice.publisher(node)
    command(house, "acl", "revoke", "user:alice", "publish", "--node", node)
    bob.consumer(node, credit=1)
    command(house, "acl", "grant", "group:traders", "publish", "--node", node)
    bob.consumer(node, credit=1, handle=2, name="other")
    alice.publish(frames.message())
    assert alice.outcomes(1) == {0: "accepted"}


def test_only_who_manages_the_realm_makes_nodes(house: GatewayProcess, peers: ExitStack) -> None:
    login(peers, house, "bob").publisher("any.open")
    command(house, "acl", "grant", "user:carol", "full", "--realm")
    try:
        bob = login(peers, house, "bob")
        for name in ("any.new", "any.open"):
            bob.send(frames.attach_sender(name, 0))
            assert bob.refused() == DENIED
            bob.send(frames.detach(0))
        bob.send(frames.attach_sender("no such node", 0))
        assert bob.refused() == "amqp:not-found"
        login(peers, house, "carol").publisher("any.new")
        bob.send(frames.attach_sender(None, 1, "relay"))
        bob.expect("attach")
        bob.publish(frames.message_to("any.relayed"), handle=1)
        assert bob.outcomes(1) == {0: REJECTED}, "nor by a message"
        carol = login(peers, house, "carol")
        carol.send(frames.attach_sender(None, 1, "relay"))
        carol.expect("attach")
        carol.publish(frames.message_to("any.relayed"), handle=1)
        assert carol.outcomes(1) == {0: "accepted"}
    finally:
        command(house, "acl", "revoke", "user:carol", "--realm", "--open")
    login(peers, house, "bob").publisher("any.newer")


def test_groups_and_users_change_while_serving(house: GatewayProcess, peers: ExitStack) -> None:
    command(house, "node", "create", "roster")
    command(house, "acl", "grant", "group:traders", "publish", "--node", "roster")
    command(house, "acl", "grant", "group:ops", "subscribe", "--node", "roster")
    alice, carol = login(peers, house, "alice"), login(peers, house, "carol")
    alice.publisher("roster")
    carol.consumer("roster", credit=1)
    file = house.config_path.with_name("users.yaml")
    try:
        rewrite(file, "users: {alice: {scram: [broken]}}\n")
        until(house, "this file of users is not used")
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
        carol.consumer("roster", credit=1, handle=2, name="again")
        assert carol.receive(1, handle=2)[0].payload == frames.message(b"1")
    finally:
        write_users(file, GROUPS)
        until(house, f"the file of users was read: {len(GROUPS)} users", 2)


def until(house: GatewayProcess, words: str, times: int = 1) -> None:
    """The gateway has logged these words so often."""
    deadline = time.monotonic() + HANG_S
    while house.log_path.read_text().count(words) < times:
        assert time.monotonic() < deadline, house.log()
        time.sleep(0.05)


def test_the_command_says_what_holds(house: GatewayProcess, node: str) -> None:
    assert command(house, "acl", "list", "--node", node) == "user:alice  publish\nuser:bob  subscribe\n"
    command(house, "acl", "grant", "group:ops", "full", "--realm")
    try:
        assert "from the realm:\ngroup:ops  durable,manage,peek,publish,purge,subscribe,temporary\n" in command(
            house, "acl", "list", "--node", node
        )
        assert (
            command(house, "acl", "check", "alice", "push", "--node", node)
            == f"publish: yes, by user:alice on node '{node}'\n"
        )
        assert (
            command(house, "acl", "check", "carol", "purge", "--node", node)
            == "purge: yes, by group:ops on the realm\n"
        )
        with pytest.raises(RuntimeError, match=r"failed \(1\)"):
            command(house, "acl", "check", "bob", "publish,subscribe", "--node", node)
    finally:
        command(house, "acl", "revoke", "group:ops", "--realm", "--open")
    assert command(house, "acl", "list", "--realm") == "no grants: everybody may do everything\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["grant", "alice", "publish"], "write user:NAME, group:NAME or"),
        (["grant", "user:alice", "publsh"], "there is no operation 'publsh'"),
        (["check", "mallory", "publish"], "there is no user 'mallory'"),
    ],
)
def test_the_command_refuses(house: GatewayProcess, node: str, words: list[str], said: str) -> None:
    with pytest.raises(RuntimeError, match=said):
        command(house, "acl", *words, "--node", node)


def test_the_last_grant_is_not_revoked_by_mistake(house: GatewayProcess, node: str) -> None:
    command(house, "acl", "revoke", "user:bob", "--node", node)
    with pytest.raises(RuntimeError, match="without grants is open to all: grant first, or say --open"):
        command(house, "acl", "revoke", "user:alice", "--node", node)
    assert command(house, "acl", "list", "--node", node) == "user:alice  publish\n"
    command(house, "acl", "revoke", "user:alice", "--node", node, "--open")
    with pytest.raises(RuntimeError, match="there is no node"):
        command(house, "acl", "grant", "user:alice", "full", "--node", "nowhere")
