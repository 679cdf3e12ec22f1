"""`realmgate drain` from one gateway into another one, as real processes: octets, counts, refusals, and a kill -9 at
each point where the two ends can differ. With Artemis: tests/interop/test_drain_artemis.py."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest
from proton import Endpoint, Message

from gateway.cli.client.connection import connected, receiver
from gateway.cli.client.peer_address import PeerAddress
from gateway.cli.drain import ledger
from gateway.cli.drain.destination import Destination
from gateway.cli.drain.ledger import Ledger, Record
from gateway.cli.drain.moved_message import moved_message
from gateway.cli.drain.transaction import Rejected
from gateway.cli.main import run
from tests.gateway.cli.drain.dying_drain import POINTS, VARIABLE
from tests.kit.messages.queues import body_of, fill, numbered, taken
from tests.kit.patience import HANG_S, until
from tests.kit.processes.certificates import Authority
from tests.kit.processes.gateway import GatewayProcess, embedded_realm, make_gateway, start_gateway
from tests.kit.wire.logins import write_users
from transformers.codec import AmqpMap, Described, Symbol, UByte, UInt, decode, encode
from transformers.message.sections import PROPERTIES, section_offsets

SIZE_MAX = 200_000


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority") / "files")


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> Iterator[GatewayProcess]:
    directory = tmp_path_factory.mktemp("old")
    write_users(directory / "users.yaml", alice=[])
    security = {
        "sasl": ["PLAIN", "ANONYMOUS"],
        "users": str(directory / "users.yaml"),
        "plain_without_tls": True,
    }
    pair = authority.sign("server", "/CN=gateway", "DNS:localhost")
    tls = {"certificate": str(pair.certificate), "key": str(pair.key)}
    nodes = {"create_on_attach": ["q.*"]}
    gateway = make_gateway(directory, embedded_realm(directory), security=security, tls=tls, nodes=nodes)
    gateway.more = ["amqps"]
    gateway.start()
    yield gateway
    assert gateway.stop() == 0


@pytest.fixture(scope="module")
def new(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    directory = tmp_path_factory.mktemp("new")
    nodes = {"create_on_attach": ["q.*", "drain.q.*"]}
    limits = {"message_size_bytes": SIZE_MAX}
    gateway = start_gateway(directory, embedded_realm(directory), nodes=nodes, limits=limits)
    yield gateway
    assert gateway.stop() == 0


Drained = tuple[int, dict[str, Any], str]


@pytest.fixture
def drain(old: GatewayProcess, new: GatewayProcess, capsys: pytest.CaptureFixture[str]) -> Any:
    """One drain in this process: its exit code, its document, what it complained of."""

    def once(queue: str, *words: str, url: str = "") -> Drained:
        code = run(["drain", url or f"amqp://{old.address}", queue, *words, "--config", str(new.config_path), "--json"])
        output = capsys.readouterr()
        complaints = [line for line in output.err.splitlines() if not line.endswith(" a second")]  # progress
        return code, json.loads(output.out) if output.out else {}, "\n".join(complaints)

    return once


def test_octets_are_kept(old: GatewayProcess, new: GatewayProcess, drain: Any) -> None:
    header = encode(Described(0x70, [True, UByte(7), UInt(3_600_000), True, UInt(4)]))
    hop = encode(Described(0x71, {Symbol("x-opt-hop"): 1}))
    annotations = encode(Described(0x72, {Symbol("x-opt-colour"): "red"}))
    bare = bytes(Message(id="1", subject="shoes", properties={"size": 42}, body=b"\x00" * 150_000).encode())
    bare = bare[section_offsets(bare)[PROPERTIES] :]
    footer = encode(Described(0x78, {Symbol("x-opt-sum"): 7}))
    fill(old.address, "q.octets", [header + hop + annotations + bare + footer, *numbered(3)])
    code, output, err = drain("q.octets")
    assert (code, err, output["stored"], output["refused"]) == (0, "", 4, 0), output
    assert output["counted"]["realm_after"] - output["counted"]["realm_before"] == 4 and output["differences"] == []
    first, *others = taken(new.address, "q.octets")
    assert first == encode(Described(0x70, [True, UByte(7), UInt(3_600_000)])) + annotations + bare + footer
    assert others == numbered(3), "in order"
    assert taken(old.address, "q.octets") == []
    assert drain("q.octets")[1]["stored_in_all_runs"] == 4, "a later run knows what was moved"


def test_the_annotations_of_rabbitmq_get_names_that_are_free() -> None:
    annotations = AmqpMap(
        [(Symbol("x-routing-key"), "orders"), (Symbol("x-opt-a"), UInt(1)), (Symbol("x-exchange"), "")]
    )
    bare = encode(Described(0x77, "b"))
    moved = moved_message(encode(Described(0x72, annotations)) + bare)
    section, end = decode(moved.octets)
    names = ["x-opt-routing-key", "x-opt-a", "x-opt-exchange"]
    assert [(str(key), value) for key, value in section.value.pairs] == [*zip(names, ["orders", 1, ""], strict=True)]
    assert moved.octets[end:] == bare and moved.digest == moved_message(bare).digest


def test_a_queue_that_gives_nothing_for_so_long_is_empty(old: GatewayProcess, new: GatewayProcess, drain: Any) -> None:
    """More than a batch, and a broker that need not answer how much it has."""
    fill(old.address, "q.silent", numbered(130))
    code, output, err = drain("q.silent", "--empty-after", "1")
    assert (code, err, output["stored"]) == (0, "", 130)
    assert taken(new.address, "q.silent") == numbered(130) and taken(old.address, "q.silent") == []


def killed(old: GatewayProcess, new: GatewayProcess, queue: str, at: str) -> None:
    command = [sys.executable, "-m", "tests.gateway.cli.drain.dying_drain", "drain", f"amqp://{old.address}", queue]
    done = subprocess.run(
        [*command, "--config", str(new.config_path)],
        env=os.environ | {VARIABLE: at},
        capture_output=True,
        timeout=HANG_S,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr


@pytest.mark.parametrize("point", POINTS)
def test_a_kill_loses_nothing_and_doubles_nothing(
    old: GatewayProcess, new: GatewayProcess, drain: Any, point: str
) -> None:
    queue = f"q.killed-{point}"
    fill(old.address, queue, numbered(400))
    killed(old, new, queue, f"{point}:2")
    code, output, err = drain(queue)
    assert (code, err) == (0, ""), output
    assert output["known"] == (100 if point == "stored" else 0), "the second batch, which the source gives again"
    assert output["known_ids"] == ([f"id-{n}" for n in range(50, 70)] if point == "stored" else [])
    assert taken(new.address, queue) == numbered(400) and taken(old.address, queue) == []


def test_messages_without_an_id_are_stored_again_and_counted(
    old: GatewayProcess, new: GatewayProcess, drain: Any
) -> None:
    fill(old.address, "q.nameless", [*numbered(100, ids=False), *numbered(100, ids=False)])
    killed(old, new, "q.nameless", "stored:1")
    code, output, _ = drain("q.nameless")
    assert (code, output["known"], output["doubtful"]) == (0, 0, 50)
    tally = Counter(body_of(message) for message in taken(new.address, "q.nameless"))
    assert tally == Counter({str(n): 3 if n < 50 else 2 for n in range(100)}), "the duplicates are those that it counts"


def test_several_nodes_get_every_message(old: GatewayProcess, new: GatewayProcess, drain: Any) -> None:
    fill(old.address, "q.spread", numbered(60))
    code, output, err = drain("q.spread", "--to", "q.one", "--to", "q.two")
    assert (code, err, output["stored"]) == (0, "", 60), output
    assert taken(new.address, "q.one") == taken(new.address, "q.two") == numbered(60)


def test_a_full_node_ends_it_and_a_later_run_goes_on(old: GatewayProcess, new: GatewayProcess, drain: Any) -> None:
    new.command("node", "create", "q.full", "--capacity-events", "120", "--honour-capacity", "true")
    fill(old.address, "q.full", numbered(200))
    code, output, err = drain("q.full")
    assert code == 1, err
    assert "q.full: it is full" in err and f"{output['stored']} messages were moved before that" in err
    new.command("node", "set", "q.full", "capacity-events=none", "honour-capacity=false")
    until(lambda: drain("q.full")[0] == 0, "the gateway to follow the change")
    assert taken(new.address, "q.full") == numbered(200)


def test_what_is_refused_stays_and_is_named(old: GatewayProcess, new: GatewayProcess, drain: Any) -> None:
    large = bytes(Message(id="large", body="x" * SIZE_MAX).encode())
    fill(old.address, "q.refused", [*numbered(10), large, *numbered(5)])
    code, output, _ = drain("q.refused")
    assert (code, output["stored"], output["refused"]) == (1, 15, 1)
    [why] = output["refusals"]
    assert why.startswith(f"large: amqp:link:message-size-exceeded: q.refused takes messages of {SIZE_MAX} octets")
    assert taken(old.address, "q.refused") == [large]


def test_a_message_that_does_not_arrive_is_seen_in_the_counts(
    old: GatewayProcess, drain: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Destination.store
    monkeypatch.setattr(Destination, "store", lambda self, messages, record: store(self, messages[1:], record))
    fill(old.address, "q.lossy", numbered(10))
    code, output, _ = drain("q.lossy")
    assert code == 1 and output["differences"] == ["the destination counts 9 messages more than before, 10 were stored"]


def test_a_drain_waits_until_the_connection_of_one_that_was_killed_is_gone(
    old: GatewayProcess, new: GatewayProcess, drain: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(old.address, "q.held", numbered(1))
    assert drain("q.held")[0] == 0
    was_held = Ledger.is_held
    with connected(PeerAddress(f"amqp://{new.address}"), HANG_S) as other:
        holder = receiver(other, "drain.q.held").link
        holder.flow(1)
        assert other.wait(lambda: holder.queued > 0, HANG_S)

        def gone(self: Ledger) -> bool:
            is_held = was_held(self)
            holder.close()
            assert other.wait(lambda: bool(holder.state & Endpoint.REMOTE_CLOSED), HANG_S)
            return is_held

        monkeypatch.setattr(Ledger, "is_held", gone)
        fill(old.address, "q.held", numbered(3)[1:])
        code, output, err = drain("q.held")
    assert (code, err, output["stored"], output["stored_in_all_runs"]) == (0, "", 2, 3)


def test_one_drain_of_a_queue_at_a_time(
    old: GatewayProcess, new: GatewayProcess, drain: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger, "_HELD_S", 0.2)
    fill(old.address, "q.twice", numbered(1))
    assert drain("q.twice")[0] == 0
    with connected(PeerAddress(f"amqp://{new.address}"), HANG_S) as other:
        holder = receiver(other, "drain.q.twice").link
        holder.flow(1)
        assert other.wait(lambda: holder.queued > 0, HANG_S)
        code, _, err = drain("q.twice")
    assert code == 2 and "its record is held by another drain of q.twice" in err
    code, _, err = drain("q.other", "--ledger", "drain.q.twice")
    assert code == 2 and f"is the ledger of a drain of q.twice at amqp://{old.address} to q.twice" in err
    fill(new.address, "drain.q.foreign", numbered(1))
    assert "holds messages that no drain wrote" in drain("q.foreign")[2]


def test_what_is_refused_at_the_start(
    old: GatewayProcess, new: GatewayProcess, drain: Any, authority: Authority
) -> None:
    code, output, err = drain("nowhere")
    assert (code, output) == (1, {}) and "nowhere: the peer refuses the link: amqp:not-found" in err
    code, output, err = drain("q.a", "--to", "nowhere")
    assert (code, output) == (1, {}) and "nowhere: the peer refuses the link: amqp:not-found" in err
    code, _, err = drain("q.a", "--ledger", "nowhere")
    assert code == 1 and "nowhere: the peer refuses the link" in err and "realmgate node create nowhere" in err
    code, _, err = drain("q.a", url=f"amqp://alice:hidden-word@{old.address}")
    assert code == 2 and "login refused (user alice, PLAIN)" in err and "hidden-word" not in err
    secured = f"amqps://localhost:{old.ports['amqps']}"
    code, _, err = drain("q.a", url=secured)
    assert code == 2 and "certificate verify failed" in err and "--from-ca FILE" in err
    code, output, err = drain("q.a", "--from-ca", str(authority.certificate), url=secured)
    assert (code, err, output["stored"]) == (0, "", 0)
    code, _, err = drain("q.a", url="http://127.0.0.1:1")
    assert code == 2 and "FROM-URL is no address of AMQP: write amqp://HOST:PORT" in err
    code, _, err = drain("q.a", url="amqp://127.0.0.1:1")
    assert code == 2 and "amqp://127.0.0.1:1: Connection refused; does a peer listen there?" in err


def test_it_says_what_it_did(old: GatewayProcess, new: GatewayProcess, capsys: pytest.CaptureFixture[str]) -> None:
    fill(old.address, "q.said", numbered(3))
    assert run(["drain", f"amqp://{old.address}", "q.said", "--url", f"amqp://{new.address}"]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines[:2] == ["q.said to q.said MESSAGES", "stored in the realm 3 and settled at the source"]
    assert "source not known not known" in lines and "destination not known not known" in lines
    assert lines[-1] == "all runs together stored 3 messages (ledger drain.q.said)"


def test_no_login_names_the_variables_of_the_source(drain: Any) -> None:
    mechanisms = encode(Described(0x40, [Symbol("PLAIN")]))
    offers = b"AMQP\x03\x01\x00\x00" + (8 + len(mechanisms)).to_bytes(4, "big") + b"\x02\x01\x00\x00" + mechanisms
    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor() as pool:

        def peer() -> None:
            opened, _ = listener.accept()
            with opened, suppress(OSError):
                opened.sendall(offers)
                while opened.recv(1000):
                    pass

        done = pool.submit(peer)
        _, _, err = drain("q.a", url=f"amqp://127.0.0.1:{listener.getsockname()[1]}")
        done.result(HANG_S)
    assert "name a user: REALMGATE_FROM_USER and REALMGATE_FROM_PASSWORD" in err


def test_a_message_that_would_end_the_link_is_refused_by_itself() -> None:
    destination = Destination.__new__(Destination)
    annotated = encode(Described(0x72, {Symbol("x-theirs"): "red"})) + encode(Described(0x77, "body"))
    with pytest.raises(Rejected, match="annotation-unknown: the annotation 'x-theirs' is not known here") as refused:
        destination.store([moved_message(annotated)], Record("", "", ()))
    assert refused.value.index == 0
